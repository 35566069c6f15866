#include "http/async_client.h"

#include <utility>

#include "http/async_exchange.h"

namespace muster::http {

AsyncCall& AsyncCall::operator=(AsyncCall&& other) noexcept {
  if (this != &other) {
    const auto dropped = std::exchange(exchange_, std::move(other.exchange_));
    if (dropped != nullptr) dropped->drop_call();
  }
  return *this;
}

AsyncCall::~AsyncCall() {
  if (exchange_ != nullptr) exchange_->drop_call();
}

void AsyncCall::pause(bool paused) {
  if (exchange_ != nullptr) exchange_->pause(paused);
}

RawStream::~RawStream() {
  exchange_->drop();
}

void RawStream::write(std::string_view bytes) {
  exchange_->write(bytes);
}

size_t RawStream::waiting() const {
  return exchange_->waiting();
}

void RawStream::close_output() {
  exchange_->close_output();
}

void RawStream::pause(bool paused) {
  exchange_->pause(paused);
}

AsyncClient::AsyncClient(base::EventLoop& loop, AsyncPlace place, std::string name)
    : loop_(loop), place_(std::move(place)), name_(std::move(name)) {}

AsyncCall AsyncClient::send(AsyncRequest request, const AsyncLimits& limits, Answered answered) {
  return stream(std::move(request), limits, nullptr, std::move(answered));
}

AsyncCall AsyncClient::stream(AsyncRequest request, const AsyncLimits& limits, OnPiece on_piece,
                              Answered answered, std::function<void()> on_head) {
  auto exchange = std::make_shared<Exchange>(loop_, name_, std::move(request), limits,
                                             ExchangeHandlers{.answered = std::move(answered),
                                                              .on_head = std::move(on_head),
                                                              .on_piece = std::move(on_piece)});
  exchange->begin(place_);
  return AsyncCall(std::move(exchange));
}

AsyncCall AsyncClient::upgrade(AsyncRequest request, const AsyncLimits& limits,
                               RawStream::Handlers handlers,
                               std::function<void(base::Result<Upgraded>)> then) {
  auto exchange = std::make_shared<Exchange>(
      loop_, name_, std::move(request), limits,
      ExchangeHandlers{.raw = std::move(handlers), .upgraded = std::move(then)});
  exchange->begin(place_);
  return AsyncCall(std::move(exchange));
}

}  // namespace muster::http
