#include "http/client.h"

#include <utility>
#include <vector>

#include "http/client_stream.h"
#include "http/head.h"
#include "http/response_reader.h"

namespace muster::http {

using base::Result;

namespace {

constexpr size_t kPiece = 64 << 10;

}  // namespace

struct Client::Impl {
  explicit Impl(ServerPlace where) : place(std::move(where)), buffer(kPiece) {}

  Result<Response> exchange(const Request& request, const OnPiece& on_piece, const Wake& wake) {
    MUSTER_CHECK(connect());
    ResponseReader reader(request.method == "HEAD", on_piece);
    // Taken out of the member, where it comes back to only after a whole exchange.
    std::unique_ptr<ClientStream> stream = std::move(connection);
    MUSTER_TRY(const bool sent,
               stream->send_all(request_head(request, host_header(place)) + request.body,
                                ClientStream::WhenAnswered::kStop));
    MUSTER_TRY(const auto progress, receive(*stream, reader, wake));
    const bool whole = sent && progress == ResponseReader::Progress::kDone;
    if (whole && reader.keep_alive()) connection = std::move(stream);
    return reader.take();
  }

  Result<void> connect() {
    if (connection != nullptr && !connection->is_dead()) return {};
    connection.reset();
    MUSTER_TRY(connection, ClientStream::connect(place));
    return {};
  }

  Result<ResponseReader::Progress> receive(ClientStream& stream, ResponseReader& reader,
                                           const Wake& wake) {
    while (true) {
      const auto received = stream.receive(buffer.data(), buffer.size(), wake);
      if (received && received->kind == ClientStream::Received::Kind::kLeft) {
        return ResponseReader::Progress::kLeft;
      }
      if (!received || received->kind == ClientStream::Received::Kind::kEnd) {
        MUSTER_CHECK(reader.put_end());
        // Bytes that end with the connection are whole only if that ended in order.
        if (!received) return received.error();
        return ResponseReader::Progress::kDone;
      }
      MUSTER_TRY(const auto progress, reader.put({buffer.data(), received->count}));
      if (progress != ResponseReader::Progress::kMore) return progress;
    }
  }

  ServerPlace place;
  std::unique_ptr<ClientStream> connection;
  std::vector<char> buffer;
};

Client::Client(std::filesystem::path socket) : impl_(std::make_unique<Impl>(std::move(socket))) {}
Client::Client(TlsEndpoint endpoint) : impl_(std::make_unique<Impl>(std::move(endpoint))) {}
Client::~Client() = default;

Result<Response> Client::send(const Request& request) {
  return impl_->exchange(request, {}, {});
}

Result<Response> Client::stream(const Request& request,
                                const std::function<bool(std::string_view)>& on_piece,
                                const Wake& wake) {
  return impl_->exchange(request, on_piece, wake);
}

}  // namespace muster::http
