#include "egress/git_answer.h"

#include "codec/pkt_line.h"

namespace firestop::egress {
namespace {

using codec::append_pkt_line;
using codec::append_pkt_mark;
using codec::PktLine;
using http::Denial;

constexpr size_t kMostText = 4000;   // bytes; git reads 65516
constexpr size_t kMostReason = 500;  // bytes

// Channels of side-band-64k.
constexpr char kReport = 1, kProgress = 2, kFatal = 3;

Denial::Answer answer(GitService service, std::string_view what, std::string body) {
  return {200,
          {{"Content-Type", "application/x-" + std::string(program_of(service)) + "-" + std::string(what)},
           {"Cache-Control", "no-cache"}},
          std::move(body)};
}

void append_error(std::string& out, std::string_view text) {
  append_pkt_line(out, "ERR " + std::string(text.substr(0, kMostText)) + "\n");
}

void append_band(std::string& out, char band, std::string_view bytes) {
  constexpr size_t kMost = codec::kMostPktPayload - 1;
  for (size_t at = 0; at < bytes.size(); at += kMost)
    append_pkt_line(out, band + std::string(bytes.substr(at, kMost)));
}

std::string report_of(const std::vector<GitRefRefusal>& refs) {
  std::string out;
  append_pkt_line(out, "unpack ok\n");
  for (const auto& [ref, reason] : refs)
    append_pkt_line(out, "ng " + ref + " " + reason.substr(0, kMostReason) + "\n");
  append_pkt_mark(out, PktLine::Kind::kFlush);
  return out;
}

}  // namespace

std::string_view program_of(GitService service) {
  return service == GitService::kFetch ? "git-upload-pack" : "git-receive-pack";
}

Denial::Answer refuse_git_refs(GitService service, std::string_view text) {
  std::string body;
  append_pkt_line(body, "# service=" + std::string(program_of(service)) + "\n");
  append_pkt_mark(body, PktLine::Kind::kFlush);
  append_error(body, text);
  return answer(service, "advertisement", std::move(body));
}

Denial::Answer refuse_git_fetch(std::string_view text) {
  std::string body;
  append_error(body, text);
  return answer(GitService::kFetch, "result", std::move(body));
}

std::optional<Denial::Answer> refuse_git_push(const GitPush& push, std::string_view text,
                                              const std::vector<GitRefRefusal>& refs) {
  if (!push.reports && !push.side_band) return std::nullopt;
  if (!push.side_band) return answer(GitService::kPush, "result", report_of(refs));
  std::string body;
  append_band(body, push.reports ? kProgress : kFatal, std::string(text.substr(0, kMostText)) + "\n");
  if (push.reports) append_band(body, kReport, report_of(refs));
  append_pkt_mark(body, PktLine::Kind::kFlush);
  return answer(GitService::kPush, "result", std::move(body));
}

}  // namespace firestop::egress
