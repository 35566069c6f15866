// Run:AI's commands beside those that submit: one function each, found by its path in commands.cc.
//
// Blocking; I/O. Each returns its usage error before it does anything.
#pragma once

#include "base/result.h"
#include "dialects/runai/commands.h"

namespace muster::dialects::runai {

// commands_list.cc
Result<int> list_jobs_command(Asked& asked);
Result<int> list_nodes_command(Asked& asked);
Result<int> describe_node_command(Asked& asked);

// commands_describe.cc
Result<int> describe_job_command(Asked& asked);

// commands_logs.cc
Result<int> logs_command(Asked& asked);

// commands_change.cc
Result<int> delete_command(Asked& asked);
Result<int> suspend_command(Asked& asked);
Result<int> resume_command(Asked& asked);

// commands_shell.cc
Result<int> bash_command(Asked& asked);
Result<int> exec_command(Asked& asked);

// commands_attach.cc
Result<int> attach_command(Asked& asked);

// commands_forward.cc
Result<int> port_forward_command(Asked& asked);

// commands_top.cc
Result<int> top_nodes_command(Asked& asked);
Result<int> top_jobs_command(Asked& asked);

// commands_projects.cc
Result<int> list_projects_command(Asked& asked);
Result<int> use_project_command(Asked& asked);
Result<int> list_clusters_command(Asked& asked);
Result<int> use_cluster_command(Asked& asked);

// commands_program.cc
Result<int> login_command(Asked& asked);
Result<int> logout_command(Asked& asked);
Result<int> whoami_command(Asked& asked);
Result<int> version_command(Asked& asked);
Result<int> completion_command(Asked& asked);
Result<int> templates_command(Asked& asked);
Result<int> update_command(Asked& asked);

}  // namespace muster::dialects::runai
