// The descriptors that the halves of a shim, and the engine that starts them, pass to each other:
// pipes, socket pairs, sockets in folders, terminals; and how long poll(2) waits for them.
//
// I/O; thread-safe, except that the functions that create a socket in a folder set the umask of the
// process for a moment. All descriptors are close-on-exec.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
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

/// A pipe from `there` to `here`; `here` is non-blocking.
base::Result<Pair> make_output_pipe();
/// A pipe from `here` to `there`; `here` is non-blocking.
base::Result<Pair> make_input_pipe();
/// A socket pair (SOCK_SEQPACKET): each message arrives whole.
base::Result<Pair> make_control();

/// The number of bytes in a pipe. For the output of a program that has ended: what comes after them is
/// from a process that the program has left behind, which may write without end.
int64_t bytes_in(const base::UniqueFd& pipe);

/// A file without a name, positioned at its beginning. For secrets, which must not be in argv.
base::Result<base::UniqueFd> in_memory_file(std::string_view content);

// --- sockets in a folder

// The path of a job's folder may be longer than the address of a socket can be, so these functions
// name the folder by a descriptor. All sockets are non-blocking.

/// Creates the socket `name` in `folder` (SOCK_SEQPACKET) with mode 0600, and listens on it.
base::Result<base::UniqueFd> listen_in(const std::string& folder, const std::string& name);

/// Creates a datagram socket in the same way.
base::Result<base::UniqueFd> bind_in(const std::string& folder, const std::string& name);

/// Connects to the socket. kNotFound: there is no such socket; kUnavailable: no process listens on
/// it.
base::Result<base::UniqueFd> connect_in(const std::string& folder, const std::string& name);

// --- terminals

/// The byte that a terminal reads as the end of the input (Ctrl-D).
inline constexpr char kTerminalEndOfInput = '\x04';
/// How long to wait for the last output of a terminal after its program has ended. Usually the
/// terminal's end follows the output at once; a program in the background may keep the terminal
/// open.
inline constexpr std::chrono::milliseconds kTerminalLastWords{500};

struct PseudoTerminal {
  base::UniqueFd master;  ///< Muster's end: reads the program's output, writes its input
  base::UniqueFd slave;   ///< the program's terminal
};

/// Opens a pseudo-terminal that does not become the controlling terminal of this process.
base::Result<PseudoTerminal> open_terminal();
/// The same out of the terminals of a task that has its own (task_account.h). `inner`: its inner
/// half.
base::Result<PseudoTerminal> open_terminal_of(pid_t inner);

void set_terminal_size(const base::UniqueFd& terminal, int rows, int columns);

// --- the timeout of poll(2): a number of milliseconds; -1: no timeout

/// At most an hour: a caller that waits longer computes the timeout again. Pure.
inline int milliseconds_of(std::chrono::nanoseconds left) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left);
  return static_cast<int>(std::clamp<int64_t>(whole.count(), 0, 3'600'000));
}

/// The shorter of two timeouts. Pure.
inline int sooner(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace muster::engine
