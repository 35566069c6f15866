// What the readers of a command line share: invocation.cc reads the commands on jobs and on muster
// itself, invocation_cluster.cc those on projects, nodes and the queue, invocation_accounts.cc
// those on who may do what.
//
// Pure; for those two files alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "cli/flag_reader.h"
#include "cli/invocation.h"

namespace muster::cli {

/// All that a reader needs.
struct Reading {
  const Command& root;
  const Arguments& arguments;
  const Caller& caller;
  base::RandomSource& random;
  FlagReader reader;

  LogLook look() const;
  Output output(const std::vector<std::string>& formats = {"table", "json", "yaml"});
  Output list_output() { return output({"table", "json", "yaml", "names"}); }
  std::string idempotency_key();

  /// The one name that the command takes, of a "job", "project" or "node"; a fault where it is
  /// missing.
  std::string name(const std::string& of);
  std::vector<std::string> names(const std::string& of);
  std::optional<std::string> optional_name() const;
  /// Whose job is meant, or empty.
  std::string whose_job() const { return reader.text("--project"); }
  /// The project that is meant: said, in use, or the server's default.
  std::string project_meant() const;
};

struct InvocationReader {
  std::string_view path;  ///< of the command: "project create"
  Invocation (*read)(Reading&);
};

/// project, node, queue, top, explain, events, suspend, resume.
std::span<const InvocationReader> cluster_readers();
/// login, logout, whoami, context, user, token, secret, audit, and the members of projects.
std::span<const InvocationReader> account_readers();
/// notify.
std::span<const InvocationReader> notify_readers();
/// metrics.
std::span<const InvocationReader> metric_readers();
/// bash, attach, convert.
std::span<const InvocationReader> session_readers();
/// cp, port-forward.
std::span<const InvocationReader> transfer_readers();
/// artifacts.
std::span<const InvocationReader> artifact_readers();

}  // namespace muster::cli
