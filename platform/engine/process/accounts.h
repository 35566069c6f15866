// The accounts of users on a server that listens: whose ids the tasks of each user have.
//
// A server that runs as root gives each user the Unix account that an administrator names, or else a
// range of ids out of `tasks.subids`. A server that runs as an ordinary account gives each user ids
// out of /etc/subuid and /etc/subgid. Without either, all tasks run under the account of the server.
//
// The ids of each user are recorded in a file beside the homes of the users (IdBook). It is not in
// the store: ids are facts of this machine's disk, and a store that is restored from a backup must
// not give ids away twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"
#include "engine/shim/id_space.h"
#include "engine/shim/plan.h"
#include "engine/shim/task_account.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// As many as a Linux system has for itself, so that a system image can be unpacked in a job.
inline constexpr uint32_t kIdsOfUser = 65'536;
/// Beyond the ids that useradd (100000 and more) and systemd-nspawn (524288 to 1879048191) take.
inline constexpr IdSpan kTeamSubids{.first = 1'879'048'192, .count = 65'536'000};

/// The ids of one user.
struct IdRange {
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t count = 0;

  bool operator==(const IdRange&) const = default;
};

/// The record of the ids of each user. A range never passes to another user, because files of the
/// first user may exist in homes, in storage and on backups.
class IdBook {
 public:
  /// The range of the server itself, whose first group id owns the storage of projects.
  static constexpr const char* kServer = "*server";

  explicit IdBook(std::filesystem::path file) : file_(std::move(file)) {}

  /// The range of `name`. Without a range, a new one is assigned, and is on disk before this
  /// returns.
  ///
  /// kExhausted: all ranges are in use; names the user. kInternal: the file cannot be read.
  base::Result<IdRange> range_of(const std::string& name, const std::vector<IdSpan>& uids,
                                 const std::vector<IdSpan>& gids, uint32_t count);

  /// The text of the file, for tests.
  static base::Result<std::vector<std::pair<std::string, IdRange>>> read(std::string_view text);

 private:
  std::filesystem::path file_;
};

/// Where a server takes the ids of its users from.
struct AccountSource {
  bool is_root = false;
  std::vector<IdSpan> uids;
  std::vector<IdSpan> gids;
  uint32_t count = kIdsOfUser;   ///< ids of each user
  std::string place;             ///< of the spans, for errors: "tasks.subids"
  std::string advice;            ///< if they are used up
  std::filesystem::path book;    ///< the file of IdBook
  std::optional<IdSpace> space;  ///< of a server that runs as an ordinary account
  /// Tasks of a Unix account get a user namespace in which all ids are the same as outside, so that
  /// their processes are counted apart from others of the account.
  bool counts_apart = false;
  bool are_of_projects = false;  ///< each project has ids and a home instead of each user
};

/// The facts of the machine and the configuration.
struct AccountFacts {
  bool all_share = false;        ///< tasks.accounts: shared
  std::optional<IdSpan> subids;  ///< tasks.subids; nothing: kTeamSubids
  bool is_root = false;
  uint32_t uid = 0;
  std::string user;
  std::string subuid;                                      ///< the text of /etc/subuid
  std::string subgid;                                      ///< the text of /etc/subgid
  std::string uid_map;                                     ///< the text of /proc/self/uid_map
  std::string gid_map;                                     ///< the text of /proc/self/gid_map
  bool has_user_namespaces = true;                         ///< root may make some
  std::vector<std::pair<std::string, uint32_t>> accounts;  ///< uids and gids of this machine
  std::string newuidmap;                                   ///< a path; empty: it is not installed
  std::string newgidmap;
};

/// Reads them.
AccountFacts account_facts(bool all_share, const std::optional<IdSpan>& subids,
                           const std::vector<std::string>& environment);

/// Where ids come from, or why all tasks run under the account of the server. Pure.
///
/// kUnavailable: this server cannot give its users ids. kInvalid: tasks.subids holds ids of others;
/// all faults at once.
base::Result<AccountSource> source_of(const AccountFacts& facts);

/// Why jobs cannot run under this Unix account; all faults at once. A server that runs as root is the
/// only one that can use another account than its own. `server_uid`: the account of the server. Jobs
/// of a single user never run under it, since they would have its rights: `tasks.accounts: shared`
/// gives it to all jobs.
std::vector<base::Fault> account_faults(const std::string& account, uint32_t server_uid);

/// A Unix account of this machine.
struct UnixAccount {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  std::filesystem::path home;
};

/// kNotFound: the account no longer exists.
base::Result<UnixAccount> find_unix_account(const std::string& name);

/// The account of a task, and its home.
struct AssignedAccount {
  TaskAccount account;
  bool is_unix_account = false;  ///< else ids of the user's own
  uint32_t storage_gid = 0;
  std::filesystem::path home;  ///< of a Unix account, where it finds its home; empty: the server's
};

/// For a task of `plan`'s owner. `inside`: the ids that tasks see themselves as, those of the server.
base::Result<AssignedAccount> assign_account(const AccountSource& source,
                                             const launch::TaskPlan& plan, uint32_t inside_uid,
                                             uint32_t inside_gid);

/// The files among the mounts of a task whose owner becomes the account of the task.
HandedFiles handed_files(const AssignedAccount& assigned, const AccountSource& source,
                         const launch::TaskPlan& plan, const VolumeFolders& volumes,
                         const TaskFolder& folder, const std::filesystem::path& home);

}  // namespace muster::engine
