// What was tried, ran, crossed and came back.
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/units.h"
#include "report/report_parts.h"
#include "story/script_list.h"

namespace firestop::report::parts {
namespace {

constexpr size_t kMostGroups = 4096;  // that are told apart; the rest is one

std::string exit_text(const story::Process& process) {
  if (!process.ended) return "not seen";
  if (WIFEXITED(process.status)) return std::to_string(WEXITSTATUS(process.status));
  const char* name = WIFSIGNALED(process.status) ? ::sigabbrev_np(WTERMSIG(process.status)) : nullptr;
  return name ? std::string("SIG") + name : "?";
}

// What a process ran last, with its arguments.
std::string ran(const story::Story& story, size_t index) {
  if (index >= story.processes.size() || story.processes[index].execs.empty()) return "(a copy)";
  const story::Execution& last = story.processes[index].execs.back();
  std::string out = last.argv.empty() ? last.file : "";
  for (const auto& argument : last.argv) {
    if (out.size() > kMostReportText) break;
    out += (out.empty() ? "" : " ") + argument;
  }
  return out;
}

// Cuts to what a page holds.
void cut_rows(ReportTable& table, const std::string& where) {
  if (table.rows.size() <= kMostReportRows) return;
  table.more = "and " + std::to_string(table.rows.size() - kMostReportRows) + " more: `" + where + "`";
  table.rows.resize(kMostReportRows);
}

std::string verdict_of(const story::NetworkEvent& event) {
  return event.data.string_or("verdict", "");
}

struct Group {
  uint64_t count = 0;
  size_t process = story::kNone;
  int64_t first_us = 0;
};

}  // namespace

std::string crossing_text(const story::NetworkEvent& event) {
  const codec::Json& data = event.data;
  const int64_t port = data.int_or("port", 0);
  const std::string scheme = data.string_or("scheme", ""), method = data.string_or("method", "");
  std::string place = data.string_or("host", "");
  if (port > 0 && !(scheme == "https" && port == 443)) place += ":" + std::to_string(port);
  if (event.kind == "name") return clean("name " + place);
  if (!method.empty()) return clean(method + " " + scheme + "://" + place + data.string_or("path", ""));
  return clean((scheme.empty() ? event.kind : scheme) + " " + place);
}

ReportSection denied(const story::Story& story, const std::string& word) {
  ReportSection out{"denied", "Tried and denied", "", Tone::kWarn, {}};
  out.table.columns = {{"What"}, {"Why"}, {"Times", true}, {"First by"}, {"First at"}};
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const auto& event : story.network) {
    if (verdict_of(event) != "denied" || event.kind == "alarm") continue;
    std::pair<std::string, std::string> key{crossing_text(event),
                                            clean(event.data.string_or("code", ""), 60)};
    if (groups.size() >= kMostGroups && !groups.contains(key)) key = {"others", ""};
    Group& group = groups[key];
    if (group.count++ == 0) group = {1, event.process, event.data.int_or("started_us", 0)};
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  for (const auto& [key, group] : sorted)
    out.table.rows.push_back({code(key.first), code(key.second, Tone::kWarn), number(group.count),
                              plain(process_name(story, group.process)), plain(time_of_day(group.first_us))});
  for (const auto& refusal : story.refusals)
    out.table.rows.push_back({code((refusal.what == "exec" ? "run " : refusal.what + " ") +
                                   (refusal.path.empty() ? "others" : refusal.path)),
                              code(refusal.what == "exec" ? "capability shell" : "not granted", Tone::kWarn),
                              number(refusal.count), plain("-"), plain("-")});
  if (out.table.rows.empty()) {
    out.lead = "Nothing was denied.";
    out.tone = Tone::kPlain;
  }
  cut_rows(out.table, "firestop network " + clean(word, 100));
  return out;
}

ReportSection alarms(const story::Story& story, const std::string& word) {
  ReportSection out{"alarms",
                    "Alarms",
                    "A credential's placeholder was about to leave for where it does not "
                    "belong, or a cap was hit.",
                    Tone::kBad,
                    {}};
  out.table.columns = {{"What"}, {"Detail"}, {"By"}, {"At"}};
  for (const auto& event : story.network)
    if (event.kind == "alarm")
      out.table.rows.push_back({plain("credential elsewhere", Tone::kBad),
                                code(event.data.string_or("credential", "") + ": " + crossing_text(event)),
                                plain(process_name(story, event.process)),
                                plain(time_of_day(event.data.int_or("started_us", 0)))});
  for (const auto& event : story.host) {
    const std::string at = event.time.size() > 19 ? event.time.substr(11, 8) : "-";
    if (event.kind == "cap.hit")
      out.table.rows.push_back(
          {plain("cap hit", Tone::kBad), code(event.data.string_or("cap", "")), plain("-"), plain(at)});
  }
  cut_rows(out.table, "firestop network " + clean(word, 100));
  return out;
}

ReportSection scripts(const story::Story& story, const std::string& word) {
  ReportSection out{"scripts", "Ran, and nobody had read it", "", Tone::kWarn, {}};
  out.table.columns = {{"N", true},    {"What"},   {"How"},        {"Ran by"},
                       {"Written by"}, {"Exists"}, {"Size", true}, {"SHA-256"}};
  const auto all = story::unread_scripts(story);
  for (auto each = all.rbegin(); each != all.rend() && out.table.rows.size() <= kMostReportRows; ++each) {
    const story::Script& script = story.scripts[each->last];
    const bool gone = script.exists == false;
    const std::string what =
        script.path.empty() ? "(" + script.how + ") " + ran(story, script.process) : script.path;
    std::string how = script.how + (each->runs > 1 ? ", " + std::to_string(each->runs) + " times" : "");
    if (script.digest.empty()) how += ", no bytes: " + script.note;
    out.table.rows.push_back({number(each->number), code(what),
                              plain(clean(how), script.digest.empty() ? Tone::kBad : Tone::kPlain),
                              plain(runner_name(story, script)), plain(process_name(story, script.writer)),
                              plain(!script.exists ? "not known"
                                    : gone         ? "no"
                                                   : "yes",
                                    gone ? Tone::kWarn : Tone::kPlain),
                              plain(script.digest.empty() ? "-" : format_bytes(script.size)),
                              script.digest.empty() ? plain("-") : code(script.digest.substr(0, 16))});
  }
  out.lead = all.empty()
                 ? (story.working.empty() ? "Nobody watched for scripts in this run."
                                          : "All that ran is from the image.")
                 : plural(all.size(), "program or script", "programs and scripts") +
                       " ran that are not from the image, newest first. Their bytes: `firestop scripts " +
                       clean(word, 100) + " --show N`.";
  if (all.empty()) out.tone = story.working.empty() ? Tone::kWarn : Tone::kPlain;
  if (all.size() > kMostReportRows) {
    out.table.rows.resize(kMostReportRows);
    out.table.more = "and " + std::to_string(all.size() - kMostReportRows) + " older";
  }
  return out;
}

ReportSection network(const story::Story& story, const std::string& word) {
  ReportSection out{"network", "Network, by host", "", Tone::kPlain, {}};
  out.table.columns = {{"Host"},         {"Allowed", true}, {"Denied", true},
                       {"Failed", true}, {"Out", true},     {"In", true}};
  struct Sum {
    uint64_t allowed = 0, denied = 0, failed = 0, bytes_out = 0, bytes_in = 0;
  };
  std::map<std::string, Sum> hosts;
  const auto bytes = [](const story::NetworkEvent& event, const char* key) {
    return static_cast<uint64_t>(std::max<int64_t>(0, event.data.int_or(key, 0)));
  };
  for (const auto& event : story.network) {
    std::string host = clean(event.data.string_or("host", ""), 120);
    if (hosts.size() >= kMostGroups && !hosts.contains(host)) host = "others";
    Sum& sum = hosts[host];
    const std::string verdict = verdict_of(event);
    ++(verdict == "allowed" ? sum.allowed : verdict == "denied" ? sum.denied : sum.failed);
    sum.bytes_out += bytes(event, "bytes_out");
    sum.bytes_in += bytes(event, "bytes_in");
  }
  std::vector<std::pair<std::string, Sum>> sorted(hosts.begin(), hosts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.bytes_out + a.second.bytes_in > b.second.bytes_out + b.second.bytes_in;
  });
  for (const auto& [host, sum] : sorted)
    out.table.rows.push_back({code(host), number(sum.allowed),
                              number(sum.denied, sum.denied ? Tone::kWarn : Tone::kPlain), number(sum.failed),
                              plain(format_bytes(sum.bytes_out)), plain(format_bytes(sum.bytes_in))});
  if (sorted.empty()) out.lead = "Nothing crossed.";
  cut_rows(out.table, "firestop network " + clean(word, 100));
  return out;
}

ReportSection processes(const story::Story& story, const std::string& word) {
  ReportSection out{"processes", "Processes", "", Tone::kPlain, {}};
  size_t badly = 0;
  uint64_t cpu_us = 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < story.processes.size(); ++i) {
    const story::Process& process = story.processes[i];
    if (process.ended && process.status != 0) ++badly;
    cpu_us += process.user_us / 1000 + process.system_us / 1000;
    order.push_back(i);
  }
  out.lead = story.processes.empty()
                 ? "No process was seen."
                 : plural(story.processes.size(), "process", "processes") + ", at most " +
                       std::to_string(peak_processes(story)) + " at once, " +
                       duration(static_cast<int64_t>(std::min<uint64_t>(cpu_us, 1ull << 50)) * 1000) +
                       " of processor time; " + std::to_string(badly) +
                       " did not end with 0. The ones that used most:";
  constexpr size_t kShown = 12;
  const auto cpu = [&story](size_t i) {
    return story.processes[i].user_us / 2 + story.processes[i].system_us / 2;
  };
  const size_t shown = std::min(kShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](size_t a, size_t b) { return cpu(a) != cpu(b) ? cpu(a) > cpu(b) : a < b; });
  out.table.columns = {{"Process"}, {"Ran"}, {"Took", true}, {"CPU", true}, {"Memory", true}, {"Exit", true}};
  for (size_t at = 0; at < shown; ++at) {
    const story::Process& process = story.processes[order[at]];
    const bool known = process.started_us > 0 && process.ended_us >= process.started_us;
    out.table.rows.push_back(
        {plain(process_name(story, order[at])), code(clean(ran(story, order[at]), 120)),
         plain(known ? duration(process.ended_us - process.started_us) : "-"),
         plain(process.ended
                   ? duration(static_cast<int64_t>(std::min<uint64_t>(cpu(order[at]), 1ull << 60)) * 2)
                   : "-"),
         plain(process.ended ? format_bytes(std::min<uint64_t>(process.max_rss_kib, 1ull << 50) * 1024)
                             : "-"),
         plain(exit_text(process), process.ended && process.status != 0 ? Tone::kWarn : Tone::kPlain)});
  }
  if (order.size() > shown)
    out.table.more =
        "and " + std::to_string(order.size() - shown) + " more: `firestop ps-tree " + clean(word, 100) + "`";
  return out;
}

ReportSection result(const story::Story& story) {
  ReportSection out{"result", "Result", "", Tone::kPlain, {}};
  out.lead = clean(story.end.string_or("message", ""));
  out.table.columns = {{"What came back"}, {"Where"}, {"Of it"}};
  for (const auto& event : story.host) {
    if (event.kind != "file.out") continue;
    const codec::Json* path = event.data.find("path");
    const std::string name = path ? evidence::bytes_of(*path) : "";
    const std::string ref = event.data.string_or("ref", "");
    if (ref.empty()) {
      out.table.rows.push_back(
          {code(name), plain("outputs"),
           plain(format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, event.data.int_or("size", 0)))) +
                 ", SHA-256 " + clean(event.data.string_or("digest", "").substr(0, 16)))});
      continue;
    }
    const auto commits = static_cast<uint64_t>(std::max<int64_t>(0, event.data.int_or("new_commits", 0)));
    out.table.rows.push_back(
        {code(name), code(ref),
         plain(plural(commits, "new commit", "new commits") +
               (event.data.bool_or("uncommitted", false) ? ", the last with what was left uncommitted" : "") +
               ", " + clean(event.data.string_or("commit", "").substr(0, 12)))});
  }
  if (out.table.rows.empty()) out.lead += (out.lead.empty() ? "" : " ") + std::string("Nothing came back.");
  cut_rows(out.table, "firestop log RUN");
  return out;
}

}  // namespace firestop::report::parts
