// The file of a checkpoint: a head, lines of text that say what follows, and the bytes themselves.
//
//   MUSTERCK | version, 4 bytes | length of the lines, 4 | length of the bytes, 8
//            | SHA-256 of everything else, 32 | lines | bytes
//
// Numbers are little-endian. Knows nothing of models.
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

/// Puts a checkpoint in the place of the one that is there, at one moment: the file is whole on the
/// disk before it gets its name.
collective::Status write_checkpoint(const std::string& folder, const CheckpointContent& content);

/// Nothing where there is no such file.
///
/// Errors: kBadArgument where it is no checkpoint, of a version to come, cut off, longer than it
/// says, or damaged; kSystem where it cannot be read.
collective::Result<std::optional<CheckpointContent>> read_checkpoint(const std::string& folder);

}  // namespace muster::training
