// The accounts of an image.
//
// Pure; thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "launch/choose_launch.h"

namespace muster::engine {

/// The account of a user of an image, from the image's files `passwd` and `group`. `user` is "",
/// "NAME", "NAME:GROUP", "1000", "1000:1000" or a mix of these. An empty user is root. A number
/// needs no line in the files; without one the account has no name, group 0 and the home "/". Pure.
///
/// kInvalid: the user or group does not exist (the error lists those that do), or `user` is
/// malformed.
base::Result<launch::Account> find_account(std::string_view user, std::string_view passwd,
                                           std::string_view group);

}  // namespace muster::engine
