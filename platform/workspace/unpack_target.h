// Where the root of a tar is made, by the rules of tar_unpack.h.
//
// I/O: looks at what is there, and makes nothing. Private to tar_unpack.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::workspace {

/// In a folder, under a name; no name: it is the folder.
struct RootPlace {
  base::UniqueFd folder;
  std::string name;
  bool is_target = false;  ///< the target itself, by that name
};

/// `name`: of the root; empty: it is the content of a folder. kNotFound, kConflict and others:
/// about the target.
base::Result<RootPlace> find_root_place(const std::string& target, const std::string& name,
                                        bool is_folder);

std::string_view without_slashes(std::string_view path);

}  // namespace muster::workspace
