#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "http/byte_stream.h"

namespace muster::http {

namespace asio = boost::asio;

namespace {

class PlainStream : public ByteStream {
 public:
  PlainStream(base::EventLoop& loop, base::UniqueFd socket) : socket_(loop.context()) {
    boost::system::error_code error;
    socket_.assign(asio::local::stream_protocol(), socket.get(), error);
    if (!error) socket.release();  // else the first read fails, and with it the connection
  }

  void async_start(Done done) override { at_once(std::move(done)); }

  void async_read_some(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, std::move(done));
  }

  void async_write_some(const Pieces& pieces, Done done) override {
    socket_.async_write_some(pieces, std::move(done));
  }

  /// What is in a unix socket stays there to be read when it is closed.
  void async_finish(Done done) override { at_once(std::move(done)); }

  void async_close_output(Done done) override {
    boost::system::error_code ignored;  // the other side may have gone
    socket_.shutdown(asio::local::stream_protocol::socket::shutdown_send, ignored);
    at_once(std::move(done));
  }

  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void at_once(Done done) {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }

  asio::local::stream_protocol::socket socket_;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(base::EventLoop& loop, base::UniqueFd socket) {
  return std::make_unique<PlainStream>(loop, std::move(socket));
}

}  // namespace muster::http
