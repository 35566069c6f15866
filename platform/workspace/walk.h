// The first look at a folder: what is in it, by stat alone; nothing is read but the .gitignore
// files. Private to the scan.
//
// I/O; blocking.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "workspace/file_state.h"
#include "workspace/manifest.h"
#include "workspace/scan.h"

namespace muster::workspace {

struct Found {
  Entry entry;  ///< of a file: without its chunks
  FileState state;
};

struct Amount {
  int64_t bytes = 0;
  size_t entries = 0;
};

/// The first twenty faults, and how many more there were.
class FaultList {
 public:
  void add(const std::string& path, std::string what);
  bool empty() const { return faults_.empty(); }
  std::vector<base::Fault> to_vector() const;

 private:
  std::vector<base::Fault> faults_;
  size_t more_ = 0;
};

struct Walk {
  std::vector<Found> found;  ///< in the order of a manifest; empty where there is too much
  Amount all;
  /// Of each folder ("src/lib/") with all that is in it, and of each file of the root.
  std::map<std::string, Amount> amounts;
  bool whole = true;  ///< false: it gave up, for there was far too much
  FaultList faults;
};

/// What cannot be sent stands in `faults`. Errors: that `folder` itself cannot be read.
base::Result<Walk> walk_folder(const std::filesystem::path& folder, const ScanOptions& options);

}  // namespace muster::workspace
