// The file of a checkpoint: a head, lines of text that describe the content, and the content as
// bytes.
//
//   MUSTERCK | version, 4 bytes | length of the lines, 4 | length of the bytes, 8
//            | SHA-256 of everything else, 32 | lines | bytes
//
// Numbers are little-endian. Independent of models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/collective/result.h"

namespace muster::training {

struct CheckpointContent {
  std::vector<std::string> lines;  // without line ends
  std::string bytes;

  bool operator==(const CheckpointContent&) const = default;
};

/// FOLDER/checkpoint.
std::string checkpoint_path(const std::string& folder);

/// Replaces the checkpoint atomically: the new file is completely on disk before it gets the name.
collective::Status write_checkpoint(const std::string& folder, const CheckpointContent& content);

/// Returns nullopt if the file does not exist.
///
/// Errors: kBadArgument if it is not a checkpoint, has a newer version, is truncated, is longer
/// than its head announces, or is damaged; kSystem if it cannot be read.
collective::Result<std::optional<CheckpointContent>> read_checkpoint(const std::string& folder);

}  // namespace muster::training
