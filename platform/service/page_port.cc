#include "service/page_port.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/files.h"
#include "base/log.h"

namespace muster::service {

using base::Result;
using server::LoopbackAddress;

namespace {

constexpr std::string_view kPortNameStart = "ui-";
constexpr std::string_view kPortNameEnd = ".localhost";
constexpr size_t kPortNameLength = 8;  // of 32 letters each: 40 bits
constexpr std::chrono::minutes kPortLook{1};

}  // namespace

std::string to_text(const LoopbackAddress& address) {
  return std::to_string(address.port) + " " + address.name + "\n";
}

std::optional<LoopbackAddress> loopback_address_of(std::string_view text) {
  LoopbackAddress address;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), address.port);
  if (error != std::errc() || address.port < 1 || address.port > 65535) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  if (!text.starts_with(' ') || !text.ends_with('\n')) return std::nullopt;
  address.name = text.substr(1, text.size() - 2);
  const bool is_plain = std::all_of(address.name.begin(), address.name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '.';
  });
  if (!is_plain || !address.name.starts_with(kPortNameStart) ||
      !address.name.ends_with(kPortNameEnd)) {
    return std::nullopt;
  }
  return address;
}

Result<LoopbackAddress> PagePort::open() {
  if (address_) return *address_;
  std::string name(kPortNameStart);
  name += base::random_name(random_, kPortNameLength);
  name += kPortNameEnd;
  return open_as({.name = std::move(name), .port = 0});
}

Result<LoopbackAddress> PagePort::open_as(LoopbackAddress address) {
  MUSTER_TRY(address.port, server_.listen_on_loopback(address.port));
  address_ = std::move(address);
  const Result<void> noted = base::write_file(file_, to_text(*address_));
  if (!noted) base::log_warning(noted.error().to_string());
  base::log_info("serves its web page on http://" + address_->name + ":" +
                 std::to_string(address_->port));
  look_whether_idle(std::chrono::minutes(0));
  return *address_;
}

void PagePort::open_again() {
  const auto noted = base::read_file(file_);
  if (!noted) return;
  const auto address = loopback_address_of(*noted);
  const auto opened =
      address ? open_as(*address) : base::Error{.what = "'" + file_.string() + "' is invalid"};
  if (opened) return;
  base::log_warning("cannot serve the web page as before: " + opened.error().what);
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

void PagePort::close() {
  if (!address_) return;
  address_.reset();
  timer_.reset();
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  base::log_info("closes the port of its web page");
  server_.close_loopback();  // the request to close it came over the unix socket
}

void PagePort::look_whether_idle(std::chrono::minutes idle) {
  if (server_.loopback_connections() > 0) idle = std::chrono::minutes(0);
  if (idle >= kIdle) return close();
  timer_ = loop_.after(kPortLook, [this, idle] { look_whether_idle(idle + kPortLook); });
}

}  // namespace muster::service
