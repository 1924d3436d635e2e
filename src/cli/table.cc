#include "cli/commands.h"

namespace firestop::cli {

CommandTable all_commands() {
  return {
      run_command(),
      init_command(),
      import_group(),
      import_openai_command(),
      check_command(),
      explain_command(),
      lock_command(),
      sign_command(),
      verify_command(),
      runs_command(),
      show_command(),
      ps_tree_command(),
      scripts_command(),
      network_command(),
      report_command(),
      log_command(),
      log_path_command(),
      log_verify_command(),
      attest_group(),
      attest_verify_command(),
      reconcile_command(),
      suggest_command(),
      rm_command(),
      memory_group(),
      memory_list_command(),
      memory_forget_command(),
      egress_group(),
      egress_test_command(),
      proxy_command(),
      image_group(),
      image_build_command(),
      image_list_command(),
      image_prune_command(),
      doctor_command(),
      completion_command(),
      help_command(),
      version_command(),
      man_command(),
      credentials_command(),
      complete_command(),
      egress_process_command(),
  };
}

}  // namespace firestop::cli
