// Makes a Story of events, one by one. The guest's part is what a hostile guest says: any order, any number,
// any size; the work for an event is bounded, and joins never go round.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "story/story.h"

namespace firestop::story {

class StoryBuilder {
 public:
  void take(evidence::Event event);
  Story finish();  // joins what can be joined only when all is known; nothing after it

 private:
  using Taker = void (StoryBuilder::*)(const evidence::Event&);
  static const std::unordered_map<std::string, Taker>& takers();

  void fork(const evidence::Event& event);
  void exec(const evidence::Event& event);
  void exit(const evidence::Event& event);
  void code(const evidence::Event& event);
  void change(const evidence::Event& event);
  void final(const evidence::Event& event);
  void socket(const evidence::Event& event);
  void lost(const evidence::Event& event);
  void collectors(const evidence::Event& event);
  void refused(const evidence::Event& event);

  size_t living(uint32_t pid) const;  // or kNone
  size_t begin(uint32_t pid, int64_t at_us);
  void set_parent(size_t child, uint32_t parent_pid);
  size_t process_at(uint32_t pid, int64_t at_us) const;
  void join_processes();
  void join_network();

  Story story_;
  // By pid, in order of their beginnings. `begin_us` never falls, whatever the guest's clock did.
  struct Life {
    size_t process = kNone;
    int64_t begin_us = 0;
    bool forked = false;  // its fork was seen
  };
  std::unordered_map<uint32_t, std::vector<Life>> lives_;
  std::unordered_map<std::string, size_t> refusals_;
};

// Whether scripts are still there and the same, from the changes after them and the files at the end.
void find_what_exists(Story& story);

}  // namespace firestop::story
