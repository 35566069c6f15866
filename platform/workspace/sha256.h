// A SHA-256 that is fed piece by piece.
//
// One owner, one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace muster::workspace {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void put(std::string_view bytes);
  /// 64 digits of hexadecimal. To be called once, last.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::workspace
