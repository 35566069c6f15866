// What is done to a store while no server uses it: `muster store backup|restore|check|set-aside`.
//
// A store is named by a file (SQLite) or a postgres:// URL. A backup is a SQLite file of the
// present schema whatever it was made from, so a backup of the one can be restored into the other.
//
// I/O, blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::store {

/// How much a store holds.
struct StoreSummary {
  int schema_version = 0;
  uint64_t jobs = 0;
  uint64_t projects = 0;
  uint64_t users = 0;
  uint64_t tokens = 0;
  uint64_t secrets = 0;
  uint64_t subscriptions = 0;  ///< to notifications
  uint64_t deliveries = 0;     ///< of notifications, that have not arrived
  uint64_t audit_records = 0;
  uint64_t set_aside = 0;  ///< unreadable records that set_aside_record() moved away

  bool operator==(const StoreSummary&) const = default;
};

/// Writes all of `store`, as of one moment, into `file` (0600), also while a server uses it.
/// kConflict: `file` is there already.
base::Result<StoreSummary> backup_store(const std::string& store,
                                        const std::filesystem::path& file);

/// Puts a backup into an empty store. kConflict: it is not empty (and stays as it is), or a server
/// leads on it. kInvalid: `file` is no backup.
base::Result<StoreSummary> restore_store(const std::filesystem::path& file,
                                         const std::string& store);

struct StoreCheck {
  StoreSummary summary;
  std::vector<std::string> faults;     ///< sentences: damaged pages, unreadable records ...
  std::vector<std::string> set_aside;  ///< sentences: which records, when and why
};
/// Reads every byte; changes nothing.
base::Result<StoreCheck> check_store(const std::string& store);

/// Moves an unreadable record, as it is, into the table `set_aside` of the same database, where no
/// server reads it. `name` is what Unreadable::argument() prints. kNotFound: no unreadable record
/// has this name. kConflict: a server uses the store, or the name means several records.
base::Result<StoreCheck> set_aside_record(const std::string& store, const std::string& name,
                                          base::Time now);

}  // namespace muster::store
