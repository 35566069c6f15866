// Who a user of an image is: the files /etc/passwd and /etc/group as the image has them.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/choose_launch.h"

namespace muster::engine {

/// The account that `user` means: "", "NAME", "NAME:GROUP", "1000", "1000:1000", in any mix. Empty
/// is root, as engines have it. A number needs no line in the files: without one it has no name,
/// the group of its own number 0, and / as its home.
///
/// Errors: kInvalid: there is no such user or group (naming those there are), or it is none at all.
base::Result<launch::Account> find_account(std::string_view user, std::string_view passwd,
                                           std::string_view group);

}  // namespace muster::engine
