// What the commands on notifications are asked to do.
//
// Plain values.
#pragma once

#include <string>
#include <vector>

#include "api/notification_wire.h"
#include "cli/output.h"

namespace muster::cli {

struct NotifyAddCommand {
  std::string project;
  api::SubscriptionRequest request;  ///< its URL is "-": that comes on standard input
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

}  // namespace muster::cli
