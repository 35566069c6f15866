// A tar that comes in pieces from where a task ran, which may be hostile: kept in a file without a
// name until it is whole, then unpacked (workspace/tar_unpack.h).
//
// Blocking; I/O; one owner at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

class FetchedTar {
 public:
  /// On the disk of `folder`. `most`: bytes that it may have; 0: any number.
  static base::Result<FetchedTar> open(const std::filesystem::path& folder, int64_t most);

  /// kExhausted: more than it may have.
  base::Result<void> take(std::string_view piece);
  /// The content of a folder, merged into this one, which is there.
  base::Result<void> unpack_into(const std::filesystem::path& folder);

 private:
  FetchedTar(base::UniqueFd file, int64_t most) : file_(std::move(file)), most_(most) {}

  base::UniqueFd file_;
  int64_t most_;
  int64_t size_ = 0;
};

}  // namespace muster::engine
