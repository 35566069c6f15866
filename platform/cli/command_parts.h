// What the commands of the tree are put together from, and the parts that the tree is written in.
//
// Pure; for command_tree.cc and its neighbours alone.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_tree.h"

namespace muster::cli {

using Flags = std::vector<Flag>;

/// Of positionals: `most`, where there may be any number.
inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

Flags operator+(Flags left, Flags right);

/// --output; the first of `formats` is what is printed without it.
Flags output_flag(std::vector<std::string> formats = {"table", "json", "yaml"});
/// The formats of what lists: with the names alone, for scripts and completion.
Flags list_output_flag();

/// --task, where a job has several.
Flags task_flag(const std::string& help);

Positionals new_name();
Positionals one_of(Offer offer);
Positionals some_of(Offer offer);
Positionals maybe_one_of(Offer offer);
Positionals any_of(Offer offer);

/// The flags of single fields of a job of this kind ("mpi", ...; "run" of `muster run`), as the
/// table of fields has them.
Flags field_flags(std::string_view kind);
/// Those that mean more than one field: how important a job is; how many workers it may have.
Flags importance_flags();
Flags worker_flags();

/// What a job finds: its files, its volumes; and what it is called by.
Flags content_flags();
/// How log lines are dressed.
Flags look_flags();
Command submit();
Command run_in_foreground();

/// project, node, queue, top.
std::vector<Command> commands_on_the_cluster();
/// login, logout, whoami, context, user, token, secret, audit; and of `project` those on members.
std::vector<Command> commands_on_accounts();
std::vector<Command> commands_on_members();
/// bash, attach, convert; cp, port-forward, artifacts; metrics; notify.
std::vector<Command> commands_on_sessions();
std::vector<Command> commands_on_files();
Command artifacts();  ///< command_tree_artifacts.cc
std::vector<Command> commands_on_metrics();
std::vector<Command> commands_on_notifications();
/// --context, of `command` and all below it that talk to a server.
void add_context_flag(Command& command);
/// --project of a command on jobs that are named.
Flags whose_job_flag();
Command simulate();
Command server();
Command doctor();
/// muster store backup|restore|check.
Command store();

}  // namespace muster::cli
