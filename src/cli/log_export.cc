#include "cli/log_export.h"

#include <time.h>

#include <cstdlib>

#include "cli/report.h"
#include "cli/terminal.h"
#include "credentials/https_post.h"
#include "exports/ocsf.h"
#include "exports/otlp.h"

namespace firestop::cli {
namespace {

constexpr std::chrono::seconds kLongestPost{30};

std::string variable(const char* name) {
  const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value ? value : "";
}

// "name=value,name=value" as every OTLP exporter takes it; values may be percent-encoded.
Result<std::vector<std::pair<std::string, std::string>>> headers_of(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto trim = [](std::string_view word) {
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    return word;
  };
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  while (!text.empty()) {
    const auto one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (trim(one).empty()) continue;
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos)
      return fail("usage.otlp_headers", "OTEL_EXPORTER_OTLP_HEADERS has a part without '='",
                  "write it as name=value,name=value");
    const auto raw = trim(one.substr(equals + 1));
    std::string value;
    for (size_t i = 0; i < raw.size(); ++i) {
      const int high = raw[i] == '%' && i + 2 < raw.size() ? digit(raw[i + 1]) : -1;
      const int low = high >= 0 ? digit(raw[i + 2]) : -1;
      value += low >= 0 ? static_cast<char>(high * 16 + low) : raw[i];
      if (low >= 0) i += 2;
    }
    out.emplace_back(trim(one.substr(0, equals)), std::move(value));
  }
  return out;
}

Result<int> send(const std::string& endpoint, const std::string& directory, Context& context) {
  TRY_ASSIGN(const std::string address, exports::otlp_address(endpoint));
  TRY_ASSIGN(const auto headers, headers_of(variable("OTEL_EXPORTER_OTLP_HEADERS")));
  const std::string ca = variable("OTEL_EXPORTER_OTLP_CERTIFICATE");
  const exports::OtlpTransport transport{
      .post = [&](const std::string& json) -> Result<exports::OtlpAnswer> {
        TRY_ASSIGN(auto answer, credentials::http_post({.url = address,
                                                        .ca_file = ca,
                                                        .content_type = "application/json",
                                                        .headers = headers,
                                                        .body = json},
                                                       kLongestPost));
        return exports::OtlpAnswer{answer.status, std::move(answer.body), answer.retry_after};
      },
      .sleep =
          [&](std::chrono::milliseconds wait) {
            context.terminal.note("the receiver is not ready; again in " +
                                  std::to_string(wait.count() / 1000) + " s");
            const timespec pause{.tv_sec = wait.count() / 1000, .tv_nsec = wait.count() % 1000 * 1000000};
            (void)::nanosleep(&pause, nullptr);
          }};
  TRY_ASSIGN(const auto result, exports::export_otlp(directory, transport));
  if (context.json)
    print_json(context, codec::JsonObject{{"sent", result.sent},
                                          {"rejected", result.rejected},
                                          {"rejection", result.rejection},
                                          {"batches", result.batches},
                                          {"retries", result.retries}});
  else
    context.terminal.out(std::to_string(result.sent) + " events sent in " + std::to_string(result.batches) +
                         (result.batches == 1 ? " batch\n" : " batches\n"));
  if (result.rejected == 0) return 0;
  context.terminal.note("the receiver did not take " + std::to_string(result.rejected) + " events" +
                        (result.rejection.empty() ? "" : ": " + result.rejection));
  return static_cast<int>(ExitStatus::kCannotStart);
}

}  // namespace

std::vector<OptionSpec> export_options() {
  return {{.name = "--format",
           .metavar = "FORMAT",
           .help = "text, or ocsf: events of the Open Cybersecurity Schema Framework, one JSON object a line",
           .kind = OptionKind::kValue,
           .values = {"text", "ocsf"}},
          {.name = "--otlp",
           .metavar = "URL",
           .help = "send the events as OpenTelemetry logs (OTLP/HTTP, JSON) instead of printing them",
           .kind = OptionKind::kValue}};
}

bool wants_export(const ParsedArgs& args) {
  return args.has("--otlp") || args.value_or("--format", "text") != "text";
}

Result<int> export_record(const ParsedArgs& args, const std::string& directory, Context& context) {
  for (const char* other : {"--follow", "--kind", "--pid"})
    if (args.has(other))
      return fail("usage.export", std::string(other) + " does not go with an export",
                  "an export is of the whole record as it is now");
  const bool ocsf = args.value_or("--format", "text") == "ocsf";
  if (ocsf && args.has("--otlp"))
    return fail("usage.export", "--format does not go with --otlp", "do one after the other");
  if (const auto endpoint = args.value("--otlp")) return send(*endpoint, directory, context);
  TRY(exports::export_ocsf(directory, [&context](const std::string& line) -> Result<void> {
    context.terminal.out(line);
    return context.terminal.flush();
  }));
  return 0;
}

}  // namespace firestop::cli
