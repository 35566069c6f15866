// What was changed, by whom, from where, and how it was before.
//
// Plain values. A record is committed together with the change that it tells of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::access {

/// Who asks for a change: what a record says about it beside the change itself.
struct Actor {
  std::string user;
  std::string address;  ///< "local" over the unix socket
  std::string token;    ///< its id, or empty
  std::string request;  ///< the id of the request, as in the server's log

  bool operator==(const Actor&) const = default;
};

/// A field that changed; a secret value is never one of them. Empty: it was not there, or is gone.
struct FieldChange {
  std::string field;  ///< "quota.deserved.gpus"
  std::string before;
  std::string after;

  bool operator==(const FieldChange&) const = default;
};

struct AuditRecord {
  uint64_t number = 0;  ///< given by the store, from 1, in the order of commits
  base::Time time;
  Actor actor;
  std::string action;   ///< "job.submit", "project.set", "token.revoke"
  std::string target;   ///< the name of what was changed
  std::string project;  ///< it belongs to; empty: to the server
  std::vector<FieldChange> changes;

  bool operator==(const AuditRecord&) const = default;
};

/// Newest first.
struct AuditQuery {
  std::optional<std::string> user;
  std::optional<std::string> project;
  std::optional<std::string> action;  ///< "job" is all of "job.…"
  std::optional<base::Time> since;
  std::optional<uint64_t> before;  ///< only records with smaller numbers: the next page
  int limit = 100;
};

bool matches(const AuditQuery& query, const AuditRecord& record);

}  // namespace muster::access
