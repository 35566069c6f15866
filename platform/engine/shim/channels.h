// The descriptors that the halves of a shim, and the engine that starts them, pass to each other:
// pipes, socket pairs, sockets in folders, terminals; and how long poll(2) waits for them.
//
// I/O; thread-safe, except that the functions that create a socket in a folder set the umask of the
// process for a moment. All descriptors are close-on-exec.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

// --- pipes and socket pairs

/// A pipe or socket pair: one end stays here, the other goes to a child.
struct Pair {
  base::UniqueFd here;
  base::UniqueFd there;
};

/// What is written `there` is read here, non-blocking.
base::Result<Pair> make_output_pipe();
/// What is written here, non-blocking, is read `there`.
base::Result<Pair> make_input_pipe();
/// SOCK_SEQPACKET: a message comes whole or not at all.
base::Result<Pair> make_control();

/// A file that has no name, to be read from its beginning. For what must stand in no argv.
base::Result<base::UniqueFd> in_memory_file(std::string_view content);

// --- sockets in a folder

/// Makes the socket `name` in `folder` (SOCK_SEQPACKET), 0600 from the start.
base::Result<base::UniqueFd> listen_in(const std::string& folder, const std::string& name);

/// The same for datagrams.
base::Result<base::UniqueFd> bind_in(const std::string& folder, const std::string& name);

/// kNotFound: there is none; kUnavailable: nobody listens (any more).
base::Result<base::UniqueFd> connect_in(const std::string& folder, const std::string& name);

// --- terminals
//
// A terminal of our own making: what a program has as its terminal is read and written at the other
// end.

/// What a terminal takes for the end of the input.
inline constexpr char kTerminalEndOfInput = '\x04';
/// A terminal's last output takes its way through the kernel. Its end comes behind it, unless a
/// program in the background keeps the terminal: then nothing for so long is the end.
inline constexpr std::chrono::milliseconds kTerminalLastWords{500};

struct PseudoTerminal {
  base::UniqueFd master;  ///< the end that stays here
  base::UniqueFd slave;   ///< the program's
};

/// Both close-on-exec; neither controls this process.
base::Result<PseudoTerminal> open_terminal();

void set_terminal_size(const base::UniqueFd& terminal, int rows, int columns);

// --- waiting
//
// How long poll(2) may wait: a number of milliseconds, or -1 for as long as nothing comes.
//
// Pure.

/// At most an hour; who waits longer looks again.
inline int milliseconds_of(std::chrono::nanoseconds left) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left);
  return static_cast<int>(std::clamp<int64_t>(whole.count(), 0, 3'600'000));
}

inline int sooner(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace muster::engine
