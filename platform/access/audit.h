// Records of the audit log: the change, its author and origin, and the values before it.
//
// Plain values. A record is committed together with its change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::access {

/// The author of a change.
struct Actor {
  std::string user;
  std::string address;  ///< "local" over the unix socket
  std::string token;    ///< its id, or empty
  std::string request;  ///< the id of the request, as in the server's log

  bool operator==(const Actor&) const = default;
};

/// A field that changed; never the value of a secret. Empty: the field was or is not set.
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
  std::string target;   ///< the name of the changed object
  std::string project;  ///< of the changed object; empty: the server
  std::vector<FieldChange> changes;

  bool operator==(const AuditRecord&) const = default;
};

/// Newest first.
struct AuditQuery {
  std::optional<std::string> user;
  std::optional<std::string> project;
  std::optional<std::string> action;  ///< "job" matches all actions "job.…"
  std::optional<base::Time> since;
  std::optional<uint64_t> before;  ///< only records with smaller numbers: the next page
  int limit = 100;
};

bool matches(const AuditQuery& query, const AuditRecord& record);

}  // namespace muster::access
