#include "guest/evidence/audit_record.h"

#include <linux/audit.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace firestop::guest {
namespace {

template <typename T>
bool number_of(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <typename T>
T number_or_0(std::string_view text, int base = 10) {
  T value = 0;
  return number_of(text, value, base) ? value : 0;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "name" and the raw value of the first field, which is taken off `rest`.
bool take_field(std::string_view& rest, std::string_view& name, std::string_view& value) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
  const size_t equals = rest.find('=');
  if (equals == std::string_view::npos) return false;
  name = rest.substr(0, equals);
  // "msg=audit(...): a=b": the last word before the sign.
  if (const size_t space = name.rfind(' '); space != std::string_view::npos) name.remove_prefix(space + 1);
  rest.remove_prefix(equals + 1);
  size_t end = 0;
  if (rest.starts_with('"')) {  // untrusted text with a quote in it comes as digits, so the next one ends it
    const size_t quote = rest.find('"', 1);
    end = quote == std::string_view::npos ? rest.size() : quote + 1;
  } else {
    end = std::min(rest.find_first_of(" \n"), rest.size());
  }
  value = rest.substr(0, end);
  rest.remove_prefix(end);
  return true;
}

void take_syscall(AuditEvent& event, std::string_view rest) {
  event.complete = true;
  for (std::string_view name, value; take_field(rest, name, value);) {
    if (name == "syscall") event.number = number_or_0<uint32_t>(value);
    if (name.size() == 2 && name[0] == 'a' && name[1] >= '0' && name[1] <= '3')
      event.arguments[name[1] - '0'] = number_or_0<uint64_t>(value, 16);
    if (name == "ppid") event.parent = number_or_0<uint32_t>(value);
    if (name == "pid") event.pid = number_or_0<uint32_t>(value);
    if (name == "uid") event.uid = number_or_0<uint32_t>(value);
    if (name == "gid") event.gid = number_or_0<uint32_t>(value);
    if (name == "exe") event.exe = audit_text(value);
  }
}

AuditPath path_of_record(std::string_view rest) {
  AuditPath path;
  for (std::string_view name, value; take_field(rest, name, value);) {
    if (name == "name") path.name = audit_text(value);
    if (name == "inode") path.inode = number_or_0<uint64_t>(value);
    if (name == "mode") path.mode = number_or_0<uint32_t>(value, 8);
    if (name == "nametype") path.kind = value;
  }
  return path;
}

}  // namespace

std::string_view audit_field(std::string_view record, std::string_view wanted) {
  for (std::string_view name, value; take_field(record, name, value);)
    if (name == wanted) return value;
  return {};
}

std::string audit_text(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    return std::string(value.substr(1, value.size() - 2));
  std::string out;
  if (value.size() % 2 != 0) return out;
  out.reserve(value.size() / 2);
  for (size_t i = 0; i + 1 < value.size(); i += 2) {
    const int high = digit(value[i]), low = digit(value[i + 1]);
    if (high < 0 || low < 0) return "";  // "(null)", "<too_long>"
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

// a0="sh" a1=2D63 a2_len=9000 a2[0]=... ; the next record goes on with a2[1]=...
void AuditAssembler::take_arguments(Open& open, std::string_view rest) {
  AuditEvent& event = open.event;
  for (std::string_view name, value; take_field(rest, name, value);) {
    if (name == "argc") {
      event.argc = number_or_0<uint32_t>(value);
      continue;
    }
    if (name.size() < 2 || name[0] != 'a') continue;
    name.remove_prefix(1);
    const size_t bracket = name.find('[');
    uint32_t index = 0;
    if (!number_of(name.substr(0, bracket), index)) continue;  // a2_len
    const std::string text = audit_text(value);
    open.bytes += text.size();
    if (index >= kMostCount || index > event.argv.size() || open.bytes > kMostArguments) {
      event.cut = true;
      continue;
    }
    if (index == event.argv.size()) event.argv.emplace_back();
    event.argv[index] += text;
  }
}

std::optional<AuditEvent> AuditAssembler::take(uint16_t type, std::string_view text) {
  // audit(1700000000.123:456): ...
  constexpr std::string_view kHead = "audit(";
  if (!text.starts_with(kHead)) return std::nullopt;
  const size_t dot = text.find('.'), colon = text.find(':'), close = text.find("):");
  if (close == std::string_view::npos || dot >= colon || colon >= close) return std::nullopt;
  int64_t seconds = 0, milliseconds = 0;
  uint64_t serial = 0;
  if (!number_of(text.substr(kHead.size(), dot - kHead.size()), seconds) ||
      !number_of(text.substr(dot + 1, colon - dot - 1), milliseconds) || seconds < 0 ||
      seconds > (int64_t{1} << 40) || milliseconds < 0 || milliseconds > 999 ||
      !number_of(text.substr(colon + 1, close - colon - 1), serial))
    return std::nullopt;
  std::string_view rest = text.substr(close + 2);
  while (rest.ends_with('\0') || rest.ends_with('\n')) rest.remove_suffix(1);

  if (type == AUDIT_EOE) {
    auto found = open_.extract(serial);
    if (found.empty()) return std::nullopt;
    AuditEvent event = std::move(found.mapped().event);
    if (event.argc > event.argv.size()) event.cut = true;
    if (event.argc < event.argv.size()) event.argc = static_cast<uint32_t>(event.argv.size());
    return event;
  }
  if (type != AUDIT_SYSCALL && type != AUDIT_EXECVE && type != AUDIT_CWD && type != AUDIT_PATH)
    return std::nullopt;
  if (!open_.contains(serial) && open_.size() >= kMostOpen) {
    open_.erase(open_.begin());  // the oldest
    ++lost_;
  }
  Open& open = open_[serial];
  AuditEvent& event = open.event;
  event.serial = serial;
  event.at_ms = seconds * 1000 + milliseconds;
  if (type == AUDIT_SYSCALL) take_syscall(event, rest);
  if (type == AUDIT_EXECVE) take_arguments(open, rest);
  if (type == AUDIT_CWD) event.cwd = audit_text(audit_field(rest, "cwd"));
  if (type == AUDIT_PATH) {
    if (event.paths.size() < kMostPaths)
      event.paths.push_back(path_of_record(rest));
    else
      event.cut = true;
  }
  return std::nullopt;
}

uint64_t AuditAssembler::take_lost() {
  return std::exchange(lost_, 0);
}

}  // namespace firestop::guest
