// Devices of a network namespace, made by rtnetlink, the kernel's own interface: a bridge, cables
// from it into other namespaces, addresses and routes of version 4.
//
// A Links works in the namespace in which it was opened, also when its process has entered another
// one since. I/O; one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// An address of version 4, the first of its four numbers in the highest byte.
using Address4 = uint32_t;

/// "10.213.4.1".
std::string address_text(Address4 address);
/// kInvalid: `text` is not four numbers.
base::Result<Address4> read_address(const std::string& text);

/// How a gang's namespace is connected to the bridge of its server.
struct Cable {
  std::string bridge;    ///< the bridge's name
  std::string port;      ///< the end at the bridge; at most 15 characters
  Address4 address = 0;  ///< of the end in the namespace
  int prefix = 0;        ///< of the network that the bridge is in
  Address4 gateway = 0;  ///< the bridge's own address

  bool operator==(const Cable&) const = default;
};

class Links {
 public:
  static base::Result<Links> open();

  /// One that is there already is taken.
  base::Result<void> make_bridge(const std::string& name);
  /// A port at the bridge that reaches no other isolated port, and the other end, `inner`, in the
  /// network namespace of process `pid`. Both ends vanish with either namespace.
  base::Result<void> make_cable(const Cable& cable, const std::string& inner, pid_t pid);
  base::Result<void> add_address(const std::string& name, Address4 address, int prefix);
  base::Result<void> switch_on(const std::string& name);
  base::Result<void> add_default_route(Address4 gateway);
  /// One that is missing is not an error.
  base::Result<void> remove(const std::string& name);

 private:
  class Request;
  explicit Links(base::UniqueFd socket) : socket_(std::move(socket)) {}
  base::Result<void> ask(Request& request, const std::string& what, int forgiven = 0);
  base::Result<int> index_of(const std::string& name);

  base::UniqueFd socket_;
  uint32_t sequence_ = 0;
};

}  // namespace muster::engine
