#include "manifest/diff.h"
#include "manifest/explain_facts.h"

namespace firestop::manifest {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr Effect kEffects[] = {Effect::kOpens, Effect::kCloses, Effect::kChanges};

struct Look {
  const char *title, *mark, *sgr;
};
Look look_of(Effect effect) {
  switch (effect) {
    case Effect::kOpens:
      return {"Opens", "+", "31"};
    case Effect::kCloses:
      return {"Closes", "-", "32"};
    case Effect::kChanges:
      return {"Changes", "~", "2"};
  }
  return {"", "", ""};
}

std::string arrow(const Change& change) {
  if (change.before.empty() && change.after.empty()) return {};
  if (change.before.empty()) return change.after;
  if (change.after.empty()) return "was " + change.before;
  return change.before + " -> " + change.after;
}

size_t count(const std::vector<Change>& changes, Effect effect) {
  size_t out = 0;
  for (const auto& change : changes) out += change.effect == effect;
  return out;
}

}  // namespace

const char* to_string(Effect effect) {
  switch (effect) {
    case Effect::kOpens:
      return "opens";
    case Effect::kCloses:
      return "closes";
    case Effect::kChanges:
      return "changes";
  }
  return "";
}

std::string diff_text(const Manifest& before, const Manifest& after, const std::vector<Change>& changes,
                      Colour colour) {
  const auto paint = [&](const char* sgr, const std::string& text) {
    return colour == Colour::kOn ? std::string("\x1b[") + sgr + "m" + text + "\x1b[0m" : text;
  };
  std::string out = paint("1", one_line(after.name)) +
                    paint("2", "  " + one_line(after.file) + " against " + one_line(before.file)) + "\n";
  if (changes.empty()) return out + "\nNothing opens, nothing closes: what is enforced is the same.\n";
  for (const Effect effect : kEffects) {
    const Look look = look_of(effect);
    const size_t many = count(changes, effect);
    out += "\n" + paint("1", std::string(look.title) + (many == 0 ? " nothing" : "")) + "\n";
    for (const auto& change : changes) {
      if (change.effect != effect) continue;
      out += "  " + paint(look.sgr, std::string(look.mark) + " " + change.field) + "\n      " + change.words +
             "\n";
      if (const auto values = arrow(change); !values.empty()) out += "      " + paint("2", values) + "\n";
    }
  }
  return out;
}

codec::Json diff_json(const Manifest& before, const Manifest& after, const std::vector<Change>& changes) {
  JsonObject out{{"name", after.name}, {"file", after.file}, {"old", before.file}};
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  for (const Effect effect : kEffects) {
    JsonArray list;
    for (const auto& change : changes)
      if (change.effect == effect)
        list.push_back(JsonObject{{"field", change.field},
                                  {"before", or_null(change.before)},
                                  {"after", or_null(change.after)},
                                  {"words", change.words}});
    out[to_string(effect)] = std::move(list);
  }
  return out;
}

}  // namespace firestop::manifest
