// What a remote shell's server says first: sshd its version, Muster's own its name.
//
// Pure.
#pragma once

#include <string_view>

namespace muster::engine {

/// By which the server of muster-rsh is known.
inline constexpr std::string_view kRshGreeting = "MUSTER-RSH";
inline constexpr std::string_view kSshGreeting = "SSH-2.0-";
/// What whoever only wants to see an sshd greet answers, so that it takes the end of the connection
/// for a polite one. Muster's own says nothing and wants no answer.
inline constexpr std::string_view kSshAnswer = "SSH-2.0-muster\r\n";

enum class Greeting {
  kUnfinished,  ///< more has to come
  kSsh,
  kRsh,
  kNone,  ///< it is somebody else
};

/// `bytes`: all that has come so far.
Greeting read_greeting(std::string_view bytes);

}  // namespace muster::engine
