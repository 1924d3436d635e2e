// ssh-keygen -Y as a child. For judging: nothing of our environment but PATH and TZ, inputs as sealed copies
// in memory, no network, bounded memory, time and output. For signing: what asking a person and an agent
// needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::manifest {

struct KeygenOutcome {
  int status = 0;        // wait(2) status
  std::string out, err;  // err names the inputs' files as given below

  bool ok() const { return status == 0; }
};

// An input file: its text, and the name that err calls it by.
struct KeygenInput {
  std::string option;  // "-s", "-f"
  std::string_view text;
  std::string name;
};

// `ssh-keygen -Y VERB ARGUMENTS... -s ... -f ...` with `message` on stdin.
Result<KeygenOutcome> keygen_judge(const std::string& verb, const std::vector<std::string>& arguments,
                                   const std::vector<KeygenInput>& inputs, std::string_view message);

// `ssh-keygen -Y sign -n NAMESPACE -f KEY` with `message` on stdin; stdout has the signature. What it says on
// stderr ("Confirm user presence for key ...") is passed on to ours as it comes, if that is a terminal.
Result<KeygenOutcome> keygen_sign(const std::string& name_space, const std::string& key_file,
                                  std::string_view message);

}  // namespace firestop::manifest
