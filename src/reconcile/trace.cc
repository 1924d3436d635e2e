#include "reconcile/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "base/file.h"
#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;

struct Format {
  TraceFormat format{};
  const char* name;
  std::unique_ptr<TraceReader> (*make)(Trace&);
};
constexpr Format kFormats[] = {
    {TraceFormat::kClaudeCode, "claude-code", claude_code_reader},
    {TraceFormat::kCodex, "codex", codex_reader},
    {TraceFormat::kOpenAiAgents, "openai-agents", openai_agents_reader},
    {TraceFormat::kOtel, "otel", otel_reader},
    {TraceFormat::kJsonl, "jsonl", jsonl_reader},
};

// Lines of a descriptor, without their ends; a line that is too long is given as an empty optional.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  // nullptr at the end.
  Result<std::optional<std::string>*> next() {
    line_ = std::string();
    bool too_long = false;
    while (true) {
      const size_t end = std::min(buffer_.find('\n', at_), buffer_.size());
      if (line_->size() + (end - at_) > kMostTraceLine) too_long = true;
      if (too_long)
        line_->clear();
      else
        line_->append(buffer_, at_, end - at_);
      const bool whole = end < buffer_.size();
      any_ |= end > at_ || whole;
      at_ = std::min(end + 1, buffer_.size());
      if (whole) break;
      TRY_ASSIGN(const bool more, fill());
      if (!more && !any_) return static_cast<std::optional<std::string>*>(nullptr);
      if (!more) break;
    }
    any_ = false;
    if (too_long) line_.reset();
    return &line_;
  }

  // What follows, whole; for a document that is more than one line.
  Result<std::string> rest(uint64_t most) {
    std::string out = buffer_.substr(at_);
    at_ = buffer_.size();
    while (true) {
      TRY_ASSIGN(const bool more, fill());
      if (!more) return out;
      if (out.size() + buffer_.size() > most) return too_large("as one JSON document", most);
      out += buffer_;
      at_ = buffer_.size();
    }
  }

 private:
  static Unexpected too_large(const char* what, uint64_t most) {
    return fail("trace.too_large",
                std::string("the trace has, ") + what + ", more than " + std::to_string(most >> 20) + " MiB",
                "give the part that belongs to this run");
  }

  Result<bool> fill() {
    buffer_.resize(256u << 10);
    at_ = 0;
    ssize_t got = 0;
    do {
      got = ::read(fd_, buffer_.data(), buffer_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return fail_errno("trace.unreadable", "reading the trace");
    buffer_.resize(static_cast<size_t>(got));
    total_ += static_cast<uint64_t>(got);
    if (total_ > kMostTrace) return too_large("in all", kMostTrace);
    return got > 0;
  }

  int fd_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t total_ = 0;
  bool any_ = false;
  std::optional<std::string> line_;
};

// The readers that are still in question: one, or with kAuto all until an entry is known.
class Readers {
 public:
  Readers(Trace& trace, TraceFormat format) : trace_(trace) {
    for (const Format& each : kFormats)
      if (format == TraceFormat::kAuto || format == each.format)
        readers_.push_back({&each, each.make(trace)});
  }

  void take(const Json& entry, uint64_t line) {
    ++trace_.entries;
    for (auto& [format, reader] : readers_) {
      reader->book().at_line(line);
      if (!reader->take(entry)) continue;
      if (trace_.format == TraceFormat::kAuto) {
        trace_.format = format->format;
        std::erase_if(readers_, [keep = format](const auto& each) { return each.first != keep; });
      }
      return;
    }
  }

  void take_document(const Json& document) {
    if (const auto* array = document.as_array()) {
      for (const Json& entry : *array) take(entry, 1);
    } else {
      take(document, 1);
    }
  }

 private:
  Trace& trace_;
  std::vector<std::pair<const Format*, std::unique_ptr<TraceReader>>> readers_;
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::optional<TraceFormat> trace_format(std::string_view name) {
  if (name == "auto") return TraceFormat::kAuto;
  for (const Format& each : kFormats)
    if (name == each.name) return each.format;
  return {};
}

const char* to_string(TraceFormat format) {
  for (const Format& each : kFormats)
    if (format == each.format) return each.name;
  return "auto";
}

Result<Trace> read_trace(int fd, const std::string& name, TraceFormat format) {
  Trace trace;
  Readers readers(trace, format);
  Lines lines(fd);
  bool first = true;
  for (uint64_t number = 1;; ++number) {
    TRY_ASSIGN(const auto* line, lines.next());
    if (!line) break;
    if (line->has_value() && is_blank(**line)) continue;
    auto entry = line->has_value() ? codec::parse_json(**line)
                                   : Result<Json>(fail("trace.unreadable", "a line that is too long"));
    if (entry) {
      if (entry->as_array())
        readers.take_document(*entry);
      else
        readers.take(*entry, number);
    } else if (first && line->has_value()) {
      // One document on many lines.
      TRY_ASSIGN(const auto rest, lines.rest(kMostTraceDocument));
      if (const auto document = codec::parse_json(**line + "\n" + rest))
        readers.take_document(*document);
      else
        return fail("trace.unknown",
                    name + " is neither JSON lines nor one JSON document: " + document.error().message);
      break;
    } else {
      ++trace.unread;
    }
    first = false;
  }
  // Of an empty trace of a given format it is known that the agent said nothing.
  const bool empty = trace.entries == 0 && trace.unread == 0;
  if (trace.format == TraceFormat::kAuto && !(empty && format != TraceFormat::kAuto))
    return fail("trace.unknown",
                "nothing in " + name + " is a trace" +
                    (format == TraceFormat::kAuto ? std::string(" of a known format")
                                                  : " of the format " + std::string(to_string(format))),
                "docs/reconcile.md has the formats; --trace-format names one");
  if (format != TraceFormat::kAuto) trace.format = format;
  return trace;
}

Result<Trace> read_trace(const std::string& path, TraceFormat format) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fail("trace.unreadable", "the trace " + path + " cannot be read: " + fd.error().message);
  return read_trace(fd->get(), path, format);
}

}  // namespace firestop::reconcile
