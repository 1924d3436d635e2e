// Whether somebody who reads the trace has seen the code that ran.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "reconcile/claim_match.h"

namespace firestop::reconcile {

class Mentions {
 public:
  // All must outlive it. `content` gives a script's bytes by its digest.
  Mentions(const story::Story& story, const Trace& trace, const Matches& matches,
           std::function<std::string(const std::string&)> content);

  // Came in with the workspace and was not changed by anybody, so it was there to be read before the run; or
  // is the text of the declared command itself.
  bool declared(const story::Script& script) const;
  // Its bytes stand somewhere in the trace: a written file, a here-document, `python3 -c`'s text.
  bool shown_anywhere(const story::Script& script) const;
  // `script` ran below this claim, and whoever read the claim and the files has seen it.
  bool claim_shows(size_t claim, const story::Script& script) const;
  // What a shell read from its stdin is nothing but commands of the trace: a harness that keeps one shell.
  bool made_of_claims(const story::Script& script) const;
  // An interpreter whose script is declared().
  bool runs_declared_script(size_t process) const;

 private:
  void collect_bytes();
  void collect_changes();
  void collect_files();
  bool named(size_t claim, const story::Script& script) const;
  bool written_by_the_agent(const story::Script& script) const;
  bool built_by_the_program(const story::Script& script) const;
  bool in_text(size_t claim, const story::Script& script) const;
  std::string directory_of(size_t process) const;

  const story::Story& story_;
  const Trace& trace_;
  const Matches& matches_;
  std::function<std::string(const std::string&)> content_;
  std::unordered_set<std::string> shown_;     // digests of bytes that the trace has
  std::unordered_set<std::string> commands_;  // normal forms of the trace's simple commands
  std::unordered_map<std::string, std::vector<size_t>> changes_;  // by path, from and to
  std::vector<bool> runs_claims_;                                 // by process
  std::map<std::string, std::string> files_;          // paths that the trace says it wrote: digest or ""
  std::map<size_t, std::vector<size_t>> scripts_of_;  // by process
  bool files_lost_ = false;
};

// The path of a file claim, absolute; "" where it cannot be known.
std::string claim_path(const Claim& claim);

}  // namespace firestop::reconcile
