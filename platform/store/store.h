// What survives: every job with all that is known of it, projects, which nodes are cordoned, users,
// tokens, secrets (sealed), who is told of what and what is still to be told, and the audit log. A
// call that has returned ok is on disk and survives a killed server and a power cut.
//
// Threads: one, the loop's. Errors name the file, or the server of the database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/secret_box.h"
#include "access/identity.h"
#include "base/result.h"
#include "job/job.h"
#include "job/notification.h"
#include "job/project.h"

namespace muster::store {

using base::Result;

/// A new job and the key it was submitted with (may be empty), kept beside it until it is removed.
struct NewJob {
  const job::Job* job = nullptr;
  std::string idempotency_key;
};

struct SecretName {
  std::string project;
  std::string name;

  auto operator<=>(const SecretName&) const = default;
};

/// Changes that are committed together: all of them, or none. What is pointed to must live until
/// commit() has returned.
struct Batch {
  std::vector<NewJob> new_jobs;
  std::vector<const job::Job*> changed_jobs;  ///< the present state of known jobs
  std::vector<std::string> removed_jobs;      ///< ids
  std::vector<job::Project> projects;         ///< new ones and changed ones, by name
  std::vector<std::string> removed_projects;  ///< names
  std::vector<std::string> cordoned_nodes;    ///< names
  std::vector<std::string> uncordoned_nodes;
  std::vector<access::User> users;          ///< new ones and changed ones, by name
  std::vector<std::string> removed_users;   ///< names
  std::vector<access::Token> tokens;        ///< new ones and changed ones, by id
  std::vector<std::string> removed_tokens;  ///< ids
  std::vector<access::Secret> secrets;      ///< new ones and changed ones, by project and name
  std::vector<SecretName> removed_secrets;
  std::vector<job::Subscription> subscriptions;    ///< new ones and changed ones, by id
  std::vector<std::string> removed_subscriptions;  ///< ids
  std::vector<job::Delivery> deliveries;           ///< new ones and changed ones, by id
  std::vector<std::string> removed_deliveries;     ///< ids
  std::vector<access::AuditRecord> audit;          ///< appended; the store gives the numbers

  bool empty() const;
};

/// A record that is there and cannot be read: its bytes have changed, or no Muster wrote them.
struct Unreadable {
  std::string kind;        ///< "job", "project", "user" ...
  std::string id;          ///< of a job
  std::string project;     ///< of a job or a secret
  std::string name;        ///< of a token, a subscription or a delivery: its id
  std::string fault;       ///< why it cannot be read
  size_t jobs_before = 0;  ///< of a job: how many of Contents::jobs are older

  bool is_job() const { return kind == "job"; }
  std::string title() const;     ///< "job 'lab/train' (id j1)"
  std::string argument() const;  ///< of set-aside: "lab/train", "user:ada"
  std::string command() const;   ///< "muster store set-aside lab/train"
};

/// All that was ever committed and not removed.
struct Contents {
  std::vector<job::Job> jobs;          ///< oldest first
  std::vector<job::Project> projects;  ///< in the order of their sequence
  std::vector<std::string> cordoned_nodes;
  std::vector<access::User> users;               ///< by name
  std::vector<access::Token> tokens;             ///< by id
  std::vector<access::Secret> secrets;           ///< by project and name
  std::vector<job::Subscription> subscriptions;  ///< by id
  std::vector<job::Delivery> deliveries;         ///< by id
  std::vector<Unreadable> unreadable;            ///< of any kind; the records that the rest lacks
};

class Store {
 public:
  virtual ~Store() = default;

  /// Verifies the checksum of every record. A record that cannot be read is listed, and is no
  /// error: one flipped bit must not take every other job away.
  virtual Result<Contents> load() = 0;

  /// One transaction, on disk when it returns. Costs one sync however much is in it: whoever has
  /// many changes gathers them. Removing what is not there is no error.
  /// kConflict, and nothing changed: a new job's id, its name in its project, or its key is there
  /// already. kNotFound: a changed job is not there. kUnavailable: the database does not answer,
  /// nothing was changed, and a later commit may succeed. kRefused: it is read-only, or this server
  /// leads no more.
  virtual Result<void> commit(const Batch& batch) = 0;

  /// The id of the job that was submitted with this key.
  virtual Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) = 0;

  /// What the query asks for, newest first, at most `limit`.
  virtual Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) = 0;

  /// Whether the database can be read and written right now: for /readyz.
  virtual Result<void> ping() = 0;
};

}  // namespace muster::store
