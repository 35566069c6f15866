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
#include <string_view>
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

/// Creates a folder that only its owner can enter (0700), unless it exists. Missing folders above it
/// have the permissions of other new folders.
collective::Status make_folder(const std::string& folder);

/// Replaces the checkpoint atomically: the new file is completely on disk before it gets the name.
collective::Status write_checkpoint(const std::string& folder, const CheckpointContent& content);

/// Returns nullopt if the file does not exist.
///
/// Errors: kBadArgument if it is not a checkpoint, has a newer version, is truncated, is longer
/// than its head announces, or is damaged; kSystem if it cannot be read.
collective::Result<std::optional<CheckpointContent>> read_checkpoint(const std::string& folder);

/// Removes the checkpoints in subfolders of `folder` whose whole name matches `pattern`, in which #
/// stands for a number, except for names that begin with `kept`. Any other file remains, and so does
/// a subfolder with other files. Ignores errors: old checkpoints that remain do no harm.
void remove_other_checkpoints(const std::string& folder, std::string_view pattern,
                              std::string_view kept);

}  // namespace muster::training
