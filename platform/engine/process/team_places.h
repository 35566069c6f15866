// On a server for a team: the folders that tasks see in place of the private folders of the
// server's account.
//
// The process engine runs every task as the account of the server. For a server with one user this
// is intended. On a server for a team, a task that reached the account's home, its sockets in /tmp
// or its runtime folder could act as the account, or leave programs there for the tasks of other
// users. So each task gets folders of its own in these places, and a home that it shares with the
// other tasks of its user.
//
// I/O: makes the homes. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"

namespace muster::engine {

struct TeamPlaces {
  std::filesystem::path homes;         ///< contains one home for each user, made with mode 0700
  bool homes_of_projects = false;      ///< `homes` contains one home for each project instead
  std::filesystem::path account_home;  ///< the path at which tasks see their home
  /// Folders in private places that tasks see nevertheless, from the configuration.
  std::vector<std::filesystem::path> shared;
};

/// The private places: /tmp, /var/tmp, /run and the account's home. Tasks see them empty.
std::vector<std::filesystem::path> private_places(const TeamPlaces& places);

/// The path at which tasks see the home of their user: the account's home, or /tmp if the account
/// has none.
std::filesystem::path home_of_tasks(const TeamPlaces& places);

/// The mounts in private places for the tasks of `owner` (a user or project): the home, the shared
/// folders, `programs` (Muster's own, if that folder is in a private place), and the files that the
/// resolver of host names needs.
///
/// kInvalid: `owner` cannot be the name of a folder.
base::Result<std::vector<Mount>> mounts_in_private_places(const TeamPlaces& places,
                                                          const std::string& owner,
                                                          const std::filesystem::path& programs);

/// Checks that a task with these mounts sees its working folder, if the folder exists on the machine.
/// No other start of the task would succeed.
///
/// kRefused: the folder is in a private place, and no mount shows it.
base::Result<void> check_working_folder(const TeamPlaces& places,
                                        const std::filesystem::path& folder,
                                        const std::vector<Mount>& mounts);

/// The variables of `environment` that Muster's programs around tasks need. A task can read the
/// environment of the process that holds it, so the server's other variables are left out.
std::vector<std::string> environment_for_holders(const std::vector<std::string>& environment);

}  // namespace muster::engine
