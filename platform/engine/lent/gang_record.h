// The record of a gang that a cluster runs, in the attempt's folder. It is written before the
// cluster is asked for anything, so that a restarted server finds what it has asked for even if the
// answer was lost, and can check the keys of muster-nodes. It is removed when the cluster has
// nothing left of the gang.
//
// GangRecord is the part that all clusters share; each engine adds fields of its own to the same
// JSON object.
//
// I/O. RecordWriter lives on the loop's thread; the rest is thread-safe (no state).
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::lent {

/// A task's place in the allocation.
struct Seat {
  std::string task;
  int component = 0;
  int index = 0;  ///< within the component
  int gpus = 0;
  bool may_be_missing = false;

  // Known once its muster-node has connected:
  std::string node;  ///< the cluster's name of the node; empty: no connection yet
  std::string address;
  bool shares_folder = false;

  bool started = false;        ///< the order to start it was sent, or is about to be
  uint64_t start = 1;          ///< the number of this order; of the next one if it was not started
  bool has_artifacts = false;  ///< fetched when the task has ended, unless the folder is shared
  bool left = false;           ///< its muster-node was ordered to leave

  bool operator==(const Seat&) const = default;
};

struct GangRecord {
  rsh::Key key{};
  std::vector<Seat> seats;  ///< in the order of the job's tasks
  bool given = false;       ///< the engine has reported the allocation
  std::optional<AllocationRevoked>
      taken;                  ///< the end of the allocation, as the engine has reported it
  bool queued_again = false;  ///< the cluster has requeued it: the next attempt may take it over
  bool given_back = false;    ///< the allocation is no longer needed

  bool operator==(const GangRecord&) const = default;
};

/// Writes the record's fields into a JSON object.
void add_to(nlohmann::json& object, const GangRecord& record);
/// Reads them. kInvalid; the error does not quote the object, which contains a key.
base::Result<GangRecord> gang_record_of(const nlohmann::json& object);

/// The texts of all files NAME in the folders of attempts in a folder of jobs. Logs the files that
/// cannot be read. An error: a folder cannot be listed, so records may be missing.
struct FoundRecord {
  GangId gang;
  std::filesystem::path path;
  std::string text;  ///< empty, and so no record, if the file cannot be read
};
base::Result<std::vector<FoundRecord>> records_in(const std::filesystem::path& jobs_folder,
                                                  const std::string& name);
/// The started tasks of an attempt: each has a folder in the folder of the attempt. An error: that
/// folder cannot be listed.
base::Result<std::vector<std::string>> started_tasks_in(
    const std::filesystem::path& attempt_folder);

/// Writes records durably, off the loop's thread. Records that arrive during a write are written
/// together: a disk syncs a hundred records in little more time than one. Must not outlive the
/// loop.
class RecordWriter {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit RecordWriter(base::EventLoop& loop) : writing_(loop) {}

  /// REQUIRES: the folder exists. Calls `done` once, later; never after this is destroyed.
  void keep(std::filesystem::path path, std::string text, Done done);

 private:
  struct PendingWrite {
    std::filesystem::path path;
    std::string text;
    Done done;
    base::Result<void> outcome;
  };
  void write_all();
  static void write(std::vector<PendingWrite>& writes);

  std::vector<PendingWrite> waiting_;
  bool is_writing_ = false;
  base::Background writing_;
};

}  // namespace muster::engine::lent
