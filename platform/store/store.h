// The data of a server that survives it: jobs, the objects that make jobs (arrays, sweeps,
// schedules), projects, cordoned nodes, users, tokens, sealed secrets, subscriptions and undelivered
// notifications, and the audit log. What a successful call
// has stored survives a killed server and a power cut.
//
// Threads: the loop's only. Errors name the file, or the database server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "base/error.h"
#include "base/result.h"
#include "job/job.h"
#include "job/notification.h"
#include "job/project.h"
#include "store/packed_job.h"

namespace muster::store {

using base::Result;

/// A new job and its idempotency key (may be empty), which is stored as long as the job.
struct NewJob {
  const job::Job* job = nullptr;
  std::string idempotency_key;
};

/// An array, a sweep or a schedule: something that makes jobs, or a part of it that is stored
/// separately. The store does not read the document.
struct Object {
  std::string kind;  ///< "array", "sweep", "schedule" ...
  std::string id;    ///< unique within its kind
  std::string project;
  std::string name;      ///< unique within its kind and project; like the project, it never changes
  std::string document;  ///< to_document() of a type of the kind's owner

  bool operator==(const Object&) const = default;
};

struct ObjectKey {
  std::string kind;
  std::string id;

  auto operator<=>(const ObjectKey&) const = default;
};

struct SecretName {
  std::string project;
  std::string name;

  auto operator<=>(const SecretName&) const = default;
};

/// Changes that are committed together: all of them, or none. The jobs that are pointed to must
/// live until commit() has returned.
struct Batch {
  std::vector<NewJob> new_jobs;
  std::vector<const job::Job*> changed_jobs;  ///< the new state of stored jobs
  /// Called before the commit, also if it fails, with each changed job that has ended and with its
  /// document, by stores that make documents: an ended job is packed without making another one.
  using Ended = std::function<void(const job::Job& job, std::string_view document)>;
  Ended ended;
  std::vector<std::string> removed_jobs;  ///< ids
  std::vector<Object> objects;            ///< new ones and changed ones, by kind and id
  std::vector<ObjectKey> removed_objects;
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
  /// The arrays and sweeps whose end is stored by this commit: for notifications, not stored.
  std::vector<job::ObjectEnd> ends;

  bool empty() const;
};

/// A stored record that cannot be read: its bytes have changed, or Muster did not write it.
struct Unreadable {
  std::string kind;        ///< "job", "project", "user" ...; of an object: its kind
  std::string id;          ///< of a job or an object
  std::string project;     ///< of a job, an object or a secret
  std::string name;        ///< of a token, a subscription or a delivery: its id
  std::string fault;       ///< why it cannot be read
  size_t jobs_before = 0;  ///< of a job: how many of the jobs that can be read are older

  bool is_job() const { return kind == "job"; }
  std::string title() const;     ///< "job 'lab/train' (id j1)"
  std::string argument() const;  ///< of set-aside: "lab/train", "user:ada"
  std::string command() const;   ///< "muster store set-aside lab/train"
};

/// A job as a server keeps it: whole, or packed once it has ended.
struct StoredJob {
  std::unique_ptr<job::Job> open;
  PackedJob ended;  ///< if `open` is nullptr
};

/// Everything in a store except the audit log.
struct Contents {
  std::vector<job::Job> jobs;          ///< of load(), oldest first
  std::vector<StoredJob> stored;       ///< the same of load_packed()
  std::vector<Object> objects;         ///< by kind and id
  std::vector<job::Project> projects;  ///< in the order of their sequence
  std::vector<std::string> cordoned_nodes;
  std::vector<access::User> users;               ///< by name
  std::vector<access::Token> tokens;             ///< by id
  std::vector<access::Secret> secrets;           ///< by project and name
  std::vector<job::Subscription> subscriptions;  ///< by id
  std::vector<job::Delivery> deliveries;         ///< by id
  std::vector<Unreadable> unreadable;            ///< records of any kind that the other lists lack
};

class Store {
 public:
  virtual ~Store() = default;

  /// Reads everything, and verifies the checksum of every record. An unreadable record is listed
  /// and is not an error: one flipped bit must not make all other jobs unavailable.
  virtual Result<Contents> load() = 0;

  /// The same for a server, with the jobs in Contents::stored: a million whole jobs would occupy
  /// 12 GiB.
  virtual Result<Contents> load_packed();

  /// One transaction, which is on disk when the call returns. It costs one disk sync for any number
  /// of changes. Removing an object that does not exist is not an error.
  ///
  /// Errors change nothing. kConflict: the id, the name or the key of a new job, or the
  /// name of a new object, is in use.
  /// kNotFound: a changed job does not exist. kUnavailable: the database does not answer; a later
  /// commit may succeed. kRefused: the database is read-only, or this server is no longer the
  /// leader.
  virtual Result<void> commit(const Batch& batch) = 0;

  /// The id of the job that was submitted with this key.
  virtual Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) = 0;

  /// The records that match the query, newest first, at most its `limit`.
  virtual Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) = 0;

  /// Whether the database can be read and written now, for /readyz.
  virtual Result<void> ping() = 0;
};

// Errors of every store.

inline base::Error job_is_taken(const job::Job& job) {
  return {.code = base::ErrorCode::kConflict,
          .what = "the id, the name or the key of job '" + job.spec.name +
                  "' is in use in project '" + job.spec.project + "'"};
}

inline base::Error object_is_taken(const Object& object) {
  return {.code = base::ErrorCode::kConflict,
          .what = "the name of " + object.kind + " '" + object.name + "' is in use in project '" +
                  object.project + "'"};
}

inline base::Error job_is_missing(const job::Job& job) {
  return {.code = base::ErrorCode::kNotFound, .what = "the store has no job " + job.id};
}

/// The source of a database's password, which may change while a store is open.
struct PasswordSource {
  std::string file;  ///< for messages
  /// Returns the present password, without printing it. Called before each connection. Empty: the
  /// URL has the password, or none is needed.
  std::function<Result<std::string>()> read;
};

/// The server that leads.
struct LeadHolder {
  std::string address;   ///< that it gave; several servers may have the same one
  bool is_self = false;  ///< it is the server that asks

  bool operator==(const LeadHolder&) const = default;
};

/// Among several servers on one database, one is the leader: only it reads and writes jobs, and the
/// others wait.
class Leadership {
 public:
  virtual ~Leadership() = default;

  /// Tries to become the leader, without waiting. True: this server leads as long as its connection
  /// to the database lives. If another server has led since then, a commit is kRefused. `address`:
  /// where waiting servers send their callers. kUnavailable: the database does not answer.
  virtual base::Result<bool> try_to_lead(const std::string& address) = 0;

  /// Nothing: no server leads.
  virtual base::Result<std::optional<LeadHolder>> leader() = 0;
};

}  // namespace muster::store
