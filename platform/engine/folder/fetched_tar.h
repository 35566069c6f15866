// A tar that arrives in pieces from the machine of a task, which may be hostile. It is kept in a
// file without a name until it is complete, and then unpacked (workspace/tar_unpack.h).
//
// I/O; blocks; one owner at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

class FetchedTar {
 public:
  /// The file is on the disk of `folder`. `most`: the limit in bytes; 0: no limit.
  static base::Result<FetchedTar> open(const std::filesystem::path& folder, int64_t most);

  /// kRefused: the tar exceeds its limit. kExhausted: the disk is full.
  base::Result<void> take(std::string_view piece);
  /// Merges the tar's content into an existing folder.
  base::Result<void> unpack_into(const std::filesystem::path& folder);

 private:
  FetchedTar(base::UniqueFd file, int64_t most) : file_(std::move(file)), most_(most) {}

  base::UniqueFd file_;
  int64_t most_;
  int64_t size_ = 0;
};

}  // namespace muster::engine
