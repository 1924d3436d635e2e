// The commands, one file each; table.cc puts them in the order in which people see them.
#pragma once

#include "cli/command.h"

namespace firestop::cli {

CommandTable all_commands();

CommandSpec run_command();  // run.cc
CommandSpec init_command();
CommandSpec import_group();  // import.cc
CommandSpec import_openai_command();
CommandSpec check_command();
CommandSpec explain_command();
CommandSpec lock_command();
CommandSpec sign_command();
CommandSpec verify_command();
CommandSpec egress_group();  // egress.cc
CommandSpec egress_test_command();
CommandSpec proxy_command();
CommandSpec image_group();  // image.cc
CommandSpec image_build_command();
CommandSpec image_list_command();
CommandSpec image_prune_command();
CommandSpec runs_command();
CommandSpec show_command();
CommandSpec ps_tree_command();
CommandSpec scripts_command();
CommandSpec network_command();
CommandSpec log_command();  // log.cc
CommandSpec log_path_command();
CommandSpec log_verify_command();  // log_verify.cc
CommandSpec attest_group();        // attest.cc
CommandSpec attest_verify_command();
CommandSpec reconcile_command();
CommandSpec suggest_command();
CommandSpec report_command();
CommandSpec rm_command();
CommandSpec memory_group();  // memory.cc
CommandSpec memory_list_command();
CommandSpec memory_forget_command();
CommandSpec doctor_command();
CommandSpec completion_command();
CommandSpec help_command();
CommandSpec version_command();
CommandSpec man_command();             // hidden: makes the manual pages
CommandSpec egress_process_command();  // hidden: a sandbox's network process, started by `run` only
CommandSpec credentials_command();     // hidden: the process that reads the sources of credentials
CommandSpec complete_command();        // hidden: what shells ask while somebody types

}  // namespace firestop::cli
