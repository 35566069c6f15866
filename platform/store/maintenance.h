// Maintenance of a store: `muster store backup|restore|check|set-aside`.
//
// A store is a file (SQLite) or a postgres:// URL. A backup is always a SQLite file of the present
// schema, so a backup of one kind of database can be restored into the other.
//
// I/O, blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::store {

/// The number of records in a store.
struct StoreSummary {
  int schema_version = 0;
  uint64_t jobs = 0;
  uint64_t objects = 0;  ///< arrays, sweeps and schedules
  uint64_t projects = 0;
  uint64_t users = 0;
  uint64_t tokens = 0;
  uint64_t secrets = 0;
  uint64_t subscriptions = 0;  ///< to notifications
  uint64_t deliveries = 0;     ///< notifications that are not delivered
  uint64_t audit_records = 0;
  uint64_t set_aside = 0;  ///< unreadable records that set_aside_record() moved away

  bool operator==(const StoreSummary&) const = default;
};

/// System calls that give a file a durable name. They return 0 or an errno.
struct NamingCalls {
  using Call =
      std::function<int(const std::filesystem::path& from, const std::filesystem::path& to)>;
  Call link;            ///< link(2)
  Call rename_if_free;  ///< renameat2(2) with RENAME_NOREPLACE
  /// open(2) and fsync(2) of a folder.
  std::function<int(const std::filesystem::path& folder)> sync_folder = sync_folder_of_system;

  static NamingCalls of_system();
  static int sync_folder_of_system(const std::filesystem::path& folder);
};

/// Gives a complete file its name, and makes the name durable, on every file system: some have no
/// hard links. kConflict: `file` exists.
base::Result<void> name_backup(const std::filesystem::path& partial,
                               const std::filesystem::path& file,
                               const NamingCalls& calls = NamingCalls::of_system());

/// Writes a consistent copy of `store` into `file` (0600), even while a server uses it.
/// kConflict: `file` exists.
base::Result<StoreSummary> backup_store(const std::string& store,
                                        const std::filesystem::path& file);

/// Restores a backup into an empty store. kConflict: the store is not empty (and is not changed),
/// or a server leads on it. kInvalid: `file` is not a backup.
base::Result<StoreSummary> restore_store(const std::filesystem::path& file,
                                         const std::string& store);

struct StoreCheck {
  StoreSummary summary;
  std::vector<std::string> faults;     ///< sentences: damaged pages, unreadable records ...
  std::vector<std::string> set_aside;  ///< sentences: which records, when and why
};
/// Reads everything; changes nothing.
base::Result<StoreCheck> check_store(const std::string& store);

/// Moves an unreadable record unchanged into the table `set_aside` of the same database, which
/// servers do not read. `name`: as Unreadable::argument() prints it. kNotFound: no unreadable
/// record has this name. kConflict: a server uses the store, or several records have the name.
base::Result<StoreCheck> set_aside_record(const std::string& store, const std::string& name,
                                          base::Time now);

}  // namespace muster::store
