// What the tasks of a team find in the places of the server's account.
//
// The process engine runs every task as the account of the server. On a server for one user that is
// the point. On a server for a team, a task that reaches the account's home, its sockets in /tmp or
// its runtime folder can act as the account, or leave programs there for the tasks of others. So in
// the place of these a task finds folders of its own, and a home that it shares with the other
// tasks of its user.
//
// Makes the homes; thread-safe as files are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"

namespace muster::engine {

struct TeamPlaces {
  std::filesystem::path homes;         ///< USER/ is the home of a user; made 0700
  std::filesystem::path account_home;  ///< where tasks find it
  /// Folders in private places that tasks find all the same: the configuration names them.
  std::vector<std::filesystem::path> shared;
};

/// Folders of the machine that a task finds empty: /tmp, /var/tmp, /run, the account's home.
std::vector<std::filesystem::path> private_places(const TeamPlaces& places);

/// Where tasks find the home of their user: that of the account, or /tmp where the account has
/// none.
std::filesystem::path home_of_tasks(const TeamPlaces& places);

/// What stands in the private places for the tasks of `owner`: the home, the shared folders,
/// `programs` (a folder of Muster's, where that lies in one), and what names are resolved by.
///
/// kInvalid: `owner` cannot be the name of a folder.
base::Result<std::vector<Mount>> mounts_in_private_places(const TeamPlaces& places,
                                                          const std::string& owner,
                                                          const std::filesystem::path& programs);

/// The variables of `environment` that programs of the machine need. The rest of it is for the
/// server alone, and a task can read the environment of the process that holds it.
std::vector<std::string> environment_for_holders(const std::vector<std::string>& environment);

}  // namespace muster::engine
