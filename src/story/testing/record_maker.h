// Makes records for tests: what a run would have told, as the lines that a Log would write, chained, without
// a key and its checkpoints. Nothing is checked, so that records can be wrong in every way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "story/story.h"

namespace firestop::story::testing {

// Sunday, 2026-11-29 20:00:00 UTC: when every made-up run begins. Times of the shorthands are milliseconds
// since then.
inline constexpr int64_t kStartUs = 1795982400ll * 1000000;

class RecordMaker {
 public:
  RecordMaker();  // in a new directory below $TMPDIR, removed with it
  RecordMaker(const RecordMaker&) = delete;
  RecordMaker& operator=(const RecordMaker&) = delete;
  ~RecordMaker();

  const std::string& directory() const { return directory_; }
  RecordMaker& event(evidence::Vantage vantage, const std::string& kind, codec::JsonObject data);
  RecordMaker& host(const std::string& kind, codec::JsonObject data) {
    return event(evidence::Vantage::kHost, kind, std::move(data));
  }
  RecordMaker& guest(const std::string& kind, codec::JsonObject data) {
    return event(evidence::Vantage::kGuest, kind, std::move(data));
  }
  RecordMaker& line(const std::string& raw);  // as it is, with a newline
  RecordMaker& tail(const std::string& raw);  // the same, without

  RecordMaker& at(int64_t ms);  // time of the events that follow
  RecordMaker& fork(uint32_t pid, uint32_t parent);
  // Of the image's; for others give `more` {"image": false, "digest": ..., "size": ...}.
  RecordMaker& exec(uint32_t pid, uint32_t parent, const std::vector<std::string>& argv,
                    codec::JsonObject more = {});
  RecordMaker& exit(uint32_t pid, int status = 0, int64_t cpu_us = 0);
  // Code with bytes: they go into the content store.
  RecordMaker& code(uint32_t pid, const std::string& how, const std::string& path, std::string_view bytes,
                    codec::JsonObject more = {});
  RecordMaker& change(uint32_t pid, const std::string& what, const std::string& path,
                      const std::string& to = {});
  RecordMaker& final(const std::string& path, std::string_view bytes);
  RecordMaker& network(const std::string& kind, codec::JsonObject data);

  std::string content(std::string_view bytes);  // stored; its digest
  void write();                                 // the lines so far to events.jsonl
  Story story();                                // written and read; a failure to read fails the test

 private:
  std::string directory_, lines_, prev_;
  int64_t seq_ = 0, ms_ = 0;
};

}  // namespace firestop::story::testing
