// Keeps the records of gangs so that they outlive a power failure, off the loop's thread. Those
// that come while others are being written are kept together: a disk takes hardly longer for a
// hundred.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/gang_record.h"

namespace muster::engine::slurm {

class RecordKeeper {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit RecordKeeper(base::EventLoop& loop) : writing_(loop) {}

  /// The folder is there. `done` is called once, later, and never when this is gone.
  void keep(std::filesystem::path path, const GangRecord& record, Done done);

 private:
  struct Wish {
    std::filesystem::path path;
    std::string text;
    Done done;
    base::Result<void> outcome;
  };
  void write_all();
  static void write(std::vector<Wish>& wishes);

  std::vector<Wish> waiting_;
  bool is_writing_ = false;
  base::Background writing_;
};

}  // namespace muster::engine::slurm
