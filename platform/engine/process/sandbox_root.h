// The root of a sandbox: a fresh one with the machine's entries in it. Only so can /generated and
// /storage exist without anything being made in the machine's own root. The same is done for every
// folder below it in which something is shown that the machine lacks.
//
// Pure but for looking at which entries folders have.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/folder/mounts.h"

namespace muster::engine {

using BubblewrapWords = std::vector<std::string>;

inline void append_words(BubblewrapWords& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/// The words for bubblewrap that make the root and the other fresh folders of `plan`, hide what is
/// `hidden`, and show the mounts. `places`: more paths that something will be mounted at. `held`:
/// folders of the machine that a task must not be able to move. `secret`: hidden in what the
/// configuration shows, too.
BubblewrapWords root_words(const MountPlan& plan, const std::vector<std::filesystem::path>& hidden,
                           const std::vector<std::filesystem::path>& places,
                           const std::vector<std::filesystem::path>& held,
                           const std::vector<std::filesystem::path>& secret = {});

/// The words that show what the configuration shows, but for what is `secret`.
void show_configured(const Mount& mount, const std::vector<std::filesystem::path>& secret,
                     BubblewrapWords& words);

/// The words that hide this where the machine's root is shown as it is, and hold the folders above.
void hold_and_hide(const std::vector<std::filesystem::path>& hidden, BubblewrapWords& words);

}  // namespace muster::engine
