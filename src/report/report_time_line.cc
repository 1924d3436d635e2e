// What happened when. The run's time is the host's: a guest with a clock of its own cannot stretch it.
#include <algorithm>
#include <array>

#include "report/report_parts.h"
#include "story/script_list.h"

namespace firestop::report::parts {
namespace {

constexpr size_t kMostLanes = 24;  // of processes; what is more is summarised
constexpr size_t kBuckets = 250;   // marks that are told apart
constexpr size_t kTicks = 5;
constexpr double kLeast = 3;  // thousandths that a mark is wide, to be seen

class Scale {
 public:
  explicit Scale(const Times& times)
      : from_(times.from_us), length_(static_cast<double>(times.to_us - times.from_us)) {}
  double at(int64_t us) const {
    return std::clamp(static_cast<double>(us - from_) / length_ * 1000, 0.0, 1000.0);
  }
  bool usable() const { return from_ > 0 && length_ > 1; }

 private:
  int64_t from_;
  double length_;
};

TimeLine::Span process_span(const story::Story& story, size_t index, const Scale& scale) {
  const story::Process& process = story.processes[index];
  TimeLine::Span span;
  span.from = scale.at(process.started_us);
  span.to = process.ended ? scale.at(process.ended_us) : 1000;
  span.to = std::max(span.to, std::min(span.from + kLeast, 1000.0));
  span.from = std::min(span.from, span.to - kLeast);
  const bool unread = std::any_of(process.execs.begin(), process.execs.end(),
                                  [](const story::Execution& e) { return !e.from_image; });
  span.tone = unread ? Tone::kWarn : process.ended && process.status != 0 ? Tone::kBad : Tone::kPlain;
  span.title = process_name(story, index);
  return span;
}

void add_processes(TimeLine& line, const story::Story& story, const Scale& scale) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < story.processes.size(); ++i) shown.push_back(i);
  const auto length = [&](size_t i) {
    const auto span = process_span(story, i, scale);
    return span.to - span.from;
  };
  if (shown.size() > kMostLanes) {
    std::vector<double> alive(kBuckets);
    for (size_t i = 0; i < story.processes.size(); ++i) {
      const auto span = process_span(story, i, scale);
      const auto bucket = [](double at) {
        return std::min(kBuckets - 1, static_cast<size_t>(at / 1000 * kBuckets));
      };
      alive[bucket(span.from)] += 1;
      if (const size_t end = bucket(span.to) + 1; end < kBuckets) alive[end] -= 1;
    }
    double sum = 0, most = 1;
    for (double& value : alive) most = std::max(most, sum += value), value = sum;
    for (double& value : alive) value /= most;
    line.lanes.push_back({"alive at once", {}, std::move(alive)});
    line.note = "The " + std::to_string(kMostLanes / 2) + " of " + std::to_string(story.processes.size()) +
                " processes that lived longest, and how many lived at once.";
    shown.resize(story.processes.size());
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
    shown.resize(kMostLanes / 2);
    std::sort(shown.begin(), shown.end());
  }
  for (const size_t i : shown)
    line.lanes.push_back({process_name(story, i), {process_span(story, i, scale)}, {}});
}

// Marks that would lie on each other are one, which has the worst of their tones.
struct Marks {
  struct Mark {
    uint64_t count = 0;
    Tone tone = Tone::kPlain;
    std::string title;
  };
  std::array<Mark, kBuckets> marks;

  void add(double at, Tone tone, const std::string& title) {
    Mark& mark = marks[std::min(kBuckets - 1, static_cast<size_t>(at / 1000 * kBuckets))];
    if (mark.count++ == 0) mark.title = title;
    mark.tone = std::max(mark.tone, tone);
  }

  TimeLine::Lane lane(const char* name) const {
    TimeLine::Lane out{name, {}, {}};
    for (size_t i = 0; i < kBuckets; ++i) {
      const Mark& mark = marks[i];
      if (mark.count == 0) continue;
      const double from = static_cast<double>(i) * 1000 / kBuckets;
      out.spans.push_back(
          {from, from + kLeast, mark.tone,
           mark.title + (mark.count > 1 ? " and " + std::to_string(mark.count - 1) + " more" : "")});
    }
    return out;
  }
};

void add_marks(TimeLine& line, const story::Story& story, const Scale& scale) {
  Marks network, scripts;
  for (const auto& event : story.network) {
    const std::string verdict = event.data.string_or("verdict", "");
    const Tone tone = event.kind == "alarm" ? Tone::kBad : verdict == "allowed" ? Tone::kGood : Tone::kWarn;
    network.add(scale.at(event.data.int_or("started_us", 0)), tone, verdict + " " + crossing_text(event));
  }
  for (const auto& script : story.scripts)
    scripts.add(scale.at(script.at_us), Tone::kWarn, clean(script.path.empty() ? script.how : script.path));
  if (!story.network.empty()) line.lanes.push_back(network.lane("network"));
  if (!story.scripts.empty()) line.lanes.push_back(scripts.lane("unread scripts"));
}

}  // namespace

size_t peak_processes(const story::Story& story) {
  std::vector<std::pair<int64_t, int>> steps;
  for (const auto& process : story.processes) {
    steps.emplace_back(process.started_us, 1);
    if (process.ended) steps.emplace_back(std::max(process.started_us, process.ended_us), -1);
  }
  std::sort(steps.begin(), steps.end());
  int64_t now = 0, peak = 0;
  for (const auto& [at, step] : steps) peak = std::max(peak, now += step);
  return static_cast<size_t>(peak);
}

TimeLine time_line(const story::Story& story, const Times& times) {
  TimeLine line;
  const Scale scale(times);
  if (!scale.usable()) return line;
  add_marks(line, story, scale);
  add_processes(line, story, scale);
  for (size_t i = 0; i < kTicks; ++i)
    line.ticks.push_back(
        duration((times.to_us - times.from_us) * static_cast<int64_t>(i) / static_cast<int64_t>(kTicks - 1)));
  return line;
}

}  // namespace firestop::report::parts
