// Plain gRPC streaming, as fast as its synchronous API allows: the same bytes as in ours_server.cc,
// in the same direction, over TLS with the same certificates, in messages of the size that the
// parameter server uses where it sends values by gRPC. Messages are raw buffers that refer to the
// sender's memory; the receiver copies them to memory of its own and does nothing else with them.
// See streams.h.
//
// Each call has the number of `bytes` in its metadata. They go to the server (push) or come from it
// (pull). The server ends after the last call (end).
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <cstring>
#include <semaphore>
#include <vector>

#include "parameter_server/chunk.h"
#include "parameter_server/rpc/security.h"
#include "streams.h"

namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;
using muster::parameter_server::kChunkBytes;
// The common interfaces of server and worker.
using Sink = grpc::internal::WriterInterface<ByteBuffer>;
using Source = grpc::internal::ReaderInterface<ByteBuffer>;

constexpr const char* kPush = "/bench.Plain/Push";
constexpr const char* kPull = "/bench.Plain/Pull";
constexpr const char* kEnd = "/bench.Plain/End";
constexpr const char* kBytes = "bytes";
constexpr std::chrono::seconds kPatience{30};

void send(Sink& stream, const std::vector<float>& values) {
  const std::byte* const bytes = std::as_bytes(std::span(values)).data();
  const std::size_t size = values.size() * sizeof(float);
  for (std::size_t at = 0; at < size; at += kChunkBytes) {
    const grpc::Slice slice(bytes + at, std::min(kChunkBytes, size - at),
                            grpc::Slice::STATIC_SLICE);
    if (!stream.Write(ByteBuffer(&slice, 1))) bench::fail("a write failed");
  }
}

void receive(Source& stream, std::vector<float>& values) {
  std::byte* const into = std::as_writable_bytes(std::span(values)).data();
  const std::size_t size = values.size() * sizeof(float);
  std::size_t at = 0;
  std::vector<grpc::Slice> slices;
  for (ByteBuffer message; stream.Read(&message); slices.clear()) {
    if (!message.Dump(&slices).ok()) bench::fail("a message has no slices");
    for (const grpc::Slice& slice : slices) {
      if (at + slice.size() > size) bench::fail("more bytes arrived than expected");
      std::memcpy(into + at, slice.begin(), slice.size());
      at += slice.size();
    }
  }
  if (at != size) bench::fail("fewer bytes arrived than expected");
}

// The code that gRPC's plug-in would generate, for buffers instead of messages.
class Service : public grpc::Service {
 public:
  Service() {
    add(kPush, [this](ServerStream& stream) { receive(stream, values_); });
    add(kPull, [this](ServerStream& stream) { send(stream, values_); });
    add(kEnd, [this](ServerStream&) { ended_.release(); });
  }

  void wait() { ended_.acquire(); }

 private:
  using ServerStream = grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>;

  void add(const char* method, const std::function<void(ServerStream&)>& handle) {
    AddMethod(new grpc::internal::RpcServiceMethod(
        method, RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<Service, ByteBuffer, ByteBuffer>(
            [handle](Service* self, grpc::ServerContext* context, ServerStream* stream) {
              const auto bytes = context->client_metadata().find(kBytes);
              self->values_.resize(std::stoull(std::string(bytes->second.data())) / sizeof(float));
              handle(*stream);
              return grpc::Status::OK;
            },
            this)));
  }

  std::vector<float> values_;
  std::binary_semaphore ended_{0};
};

void serve(const std::string& address, const std::string& key) {
  const auto credentials = muster::parameter_server::server_credentials(key);
  if (!credentials) bench::fail(credentials.error().to_string());
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, *credentials, &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server || port == 0) bench::fail("cannot listen on " + address);
  service.wait();
  server->Shutdown();
}

class Worker {
 public:
  using WorkerStream = grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>;

  Worker(const std::string& address, const std::string& key) {
    const auto credentials = muster::parameter_server::worker_credentials(key);
    if (!credentials) bench::fail(credentials.error().to_string());
    channel_ = grpc::CreateCustomChannel(address, *credentials,
                                         muster::parameter_server::channel_arguments(kPatience));
    if (!channel_->WaitForConnected(std::chrono::system_clock::now() + kPatience)) {
      bench::fail("no server at " + address);
    }
  }

  void call(const char* method, std::uint64_t bytes,
            const std::function<void(WorkerStream&)>& exchange) {
    grpc::ClientContext context;
    context.AddMetadata(kBytes, std::to_string(bytes));
    const std::unique_ptr<WorkerStream> stream(
        grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>::Create(
            channel_.get(), RpcMethod(method, RpcMethod::BIDI_STREAMING), &context));
    exchange(*stream);
    const grpc::Status status = stream->Finish();
    if (!status.ok()) bench::fail(std::string(method) + ": " + status.error_message());
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

void work(const std::string& address, const std::string& key, const bench::Arguments& arguments) {
  Worker worker(address, key);
  const auto seconds = static_cast<double>(arguments.number("seconds", 1));
  for (const std::string& size : arguments.list("sizes", "1048576")) {
    const std::uint64_t bytes = std::stoull(size);
    const std::vector<float> values(bytes / sizeof(float), 1);
    bench::measure_stream("push", bytes, seconds, [&] {
      worker.call(kPush, bytes, [&](auto& stream) {
        send(stream, values);
        stream.WritesDone();
      });
    });
    // The pushed values are returned.
    std::vector<float> pulled(values.size());
    bench::measure_stream("pull", bytes, seconds, [&] {
      worker.call(kPull, bytes, [&](auto& stream) { receive(stream, pulled); });
    });
    bench::verify(pulled, 1);
  }
  worker.call(kEnd, 0, [](auto&) {});
}

}  // namespace

int main(int argc, char** argv) {
  bench::run_side(argc, argv, serve, work);
}
