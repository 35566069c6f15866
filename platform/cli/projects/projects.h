// The commands on projects and on notifications about their jobs: project, notify.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cluster_wire.h"
#include "api/notification_wire.h"
#include "api/usage.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "job/project.h"

namespace muster::cli::projects {

struct ProjectChangeCommand {
  enum class What { kCreate, kSet };
  What what = What::kCreate;
  std::string name;
  api::ProjectChange change;
  Output output = Output::kTable;
};

struct ProjectListCommand {
  std::string in_use;  ///< the caller's project; empty: the server's default
  Output output = Output::kTable;
};

struct ProjectGetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct ProjectDeleteCommand {
  std::vector<std::string> names;
  bool ignore_missing = false;
};

struct ProjectUseCommand {
  std::optional<std::string> name;  ///< nothing: prints the project in use
  std::string in_use;               ///< the caller's current project; empty: the server's default
};

struct ProjectUsageCommand {
  std::string name;
  api::UsageQuery query;
  Output output = Output::kTable;
};

struct NotifyAddCommand {
  std::string project;
  api::SubscriptionRequest request;  ///< a URL "-" is read from standard input
  Output output = Output::kTable;
};

struct NotifyListCommand {
  std::string project;
  Output output = Output::kTable;
};

struct NotifyRemoveCommand {
  std::string project;
  std::vector<std::string> ids;
  bool ignore_missing = false;
};

struct NotifyTestCommand {
  std::string project;
  std::string id;
  Output output = Output::kTable;
};

struct NotifyRotateCommand {
  std::string project;
  std::string id;
  Output output = Output::kTable;
};

struct NotifyDeadCommand {
  std::string project;
  Output output = Output::kTable;
};

struct NotifyRetryCommand {
  std::string project;
  std::vector<std::string> ids;  ///< none: all
};

Result<int> execute(const ProjectChangeCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectListCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectGetCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectUseCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectUsageCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyAddCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyListCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRemoveCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRotateCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyTestCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyDeadCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRetryCommand& command, const Hooks& hooks);

// projects.cc; without those on members (accounts.h)
Command project_command();
// notify.cc
Command notify_command();

// Projects as text for people: the tree of `project list`, the page of `project get`. Pure.

/// NAME QUOTA LIMIT WEIGHT FAIR-SHARE USED RUNNING WAITING; subprojects are indented below
/// their parents. The project `in_use` is marked with a star.
std::string project_table(const std::vector<job::ProjectStatus>& projects,
                          const std::string& in_use = {});

/// PROJECT USER JOBS FAILED JOB-HOURS GPU-HOURS, and a line with the sums.
std::string usage_table(const api::ProjectUsage& usage);

/// Quota, limit and use, and the quotas in node pools.
std::string project_page(const job::ProjectStatus& project);

}  // namespace muster::cli::projects
