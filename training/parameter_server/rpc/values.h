// Values through a gRPC stream: out as chunks, in from chunks. Both ends send and receive so.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "parameter_server/chunk.h"

namespace muster::parameter_server {

/// Sends values whose pieces have `counts` elements, each at most kChunkBytes long, as many to a
/// chunk as fit. `piece(i)` is called once for each, in order, shortly before it is sent.
/// False where `write` is: the stream has ended.
bool send_values(std::span<const std::size_t> counts,
                 const std::function<grpc::Slice(std::size_t)>& piece,
                 const std::function<bool(const grpc::ByteBuffer&)>& write);

/// Lays a chunk's values into `into`. False where the message is no chunk, or there is no more
/// room.
bool take_chunk(grpc::ByteBuffer& chunk, Filler& into);

/// A protobuf message as a raw stream carries it.
template <typename Message>
grpc::ByteBuffer raw(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own = false;
  grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own);
  return buffer;
}

/// False where the buffer holds something else.
template <typename Message>
bool parse(grpc::ByteBuffer& buffer, Message& message) {
  return grpc::SerializationTraits<Message>::Deserialize(&buffer, &message).ok();
}

}  // namespace muster::parameter_server
