// The user database as a task that answers ssh should see it. sshd runs every command through the
// user's login shell and asks whether the account is locked; neither must decide whether a job
// runs.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::engine {

/// `passwd` with /bin/sh as the shell of `user`: a service account's nologin would refuse every
/// rank, and bash would read the user's .bashrc first, which takes its time and may print.
std::string with_plain_shell(std::string_view passwd, std::string_view user);

/// A shadow file in which `user` has no password and is not locked either. Without PAM, sshd
/// refuses an account whose password begins with '!', as root's does on many machines.
std::string unlocked_shadow(std::string_view user);

}  // namespace muster::engine
