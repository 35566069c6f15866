// The loopback port of the web page of a server without TLS. `muster ui` has it opened; it closes
// half an hour after the last browser has gone, or on request.
//
// While it is open, a file of the state folder holds its number and its name: a server that starts
// again opens the same port, so that open pages find it.
//
// On the EventLoop's thread; what the constructor gets must outlive it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "http/server.h"
#include "server/page.h"

namespace muster::service {

class PagePort : public server::LoopbackDoor {
 public:
  /// How long the port stays open without a browser.
  static constexpr std::chrono::minutes kIdle{30};

  PagePort(base::EventLoop& loop, base::RandomSource& random, http::Server& server,
           std::filesystem::path file)
      : loop_(loop), random_(random), server_(server), file_(std::move(file)) {}

  base::Result<server::LoopbackAddress> open() override;
  void close() override;
  std::optional<server::LoopbackAddress> address() const override { return address_; }

  /// Opens the port that was open when the last server ended, if one was.
  void open_again();

 private:
  base::Result<server::LoopbackAddress> open_as(server::LoopbackAddress address);
  void look_whether_idle(std::chrono::minutes idle);

  base::EventLoop& loop_;
  base::RandomSource& random_;
  http::Server& server_;
  std::filesystem::path file_;
  std::optional<server::LoopbackAddress> address_;
  base::EventLoop::Interest timer_;
};

/// "41873 ui-k3x9a2.localhost\n", the content of the file. Pure.
std::string to_text(const server::LoopbackAddress& address);
std::optional<server::LoopbackAddress> loopback_address_of(std::string_view text);

}  // namespace muster::service
