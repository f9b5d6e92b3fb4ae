// SPDX-License-Identifier: Apache-2.0
#include "publishers/webhook/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace postrider {
namespace {

using Bytes6 = std::array<std::uint8_t, 16>;

constexpr std::uint32_t v4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24U | b << 16U | c << 8U | d;
}

struct Net4 {
  std::uint32_t net;
  unsigned bits;
};
// What IANA's registry of special addresses has as not globally reachable, and one host of a cloud.
constexpr std::array<Net4, 17> not_public4{{
    {v4(0, 0, 0, 0), 8},
    {v4(10, 0, 0, 0), 8},
    {v4(100, 64, 0, 0), 10},  // carriers; a cloud has its metadata here
    {v4(127, 0, 0, 0), 8},
    {v4(168, 63, 129, 16), 32},  // Azure's host
    {v4(169, 254, 0, 0), 16},    // most clouds' metadata
    {v4(172, 16, 0, 0), 12},
    {v4(192, 0, 0, 0), 24},
    {v4(192, 0, 2, 0), 24},
    {v4(192, 88, 99, 0), 24},
    {v4(192, 168, 0, 0), 16},
    {v4(198, 18, 0, 0), 15},
    {v4(198, 51, 100, 0), 24},
    {v4(203, 0, 113, 0), 24},
    {v4(224, 0, 0, 0), 4},
    {v4(240, 0, 0, 0), 4},
    {v4(255, 255, 255, 255), 32},
}};

bool public4(std::uint32_t address) {
  return std::none_of(not_public4.begin(), not_public4.end(),
                      [&](const Net4& one) { return (address ^ one.net) >> (32U - one.bits) == 0; });
}

std::uint32_t v4_at(const Bytes6& bytes, std::size_t at) {
  return v4(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
}

template <std::size_t size>
bool begins(const Bytes6& bytes, const std::array<std::uint8_t, size>& prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

bool public6(const Bytes6& bytes) {
  constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr std::array<std::uint8_t, 12> translated{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};  // NAT64
  constexpr std::size_t tail = 12;
  if (begins(bytes, mapped) || begins(bytes, translated)) return public4(v4_at(bytes, tail));
  constexpr std::array<std::uint8_t, 2> six_to_four{0x20, 0x02};
  if (begins(bytes, six_to_four)) return public4(v4_at(bytes, 2));
  constexpr std::array<std::uint8_t, 4> documentation{0x20, 0x01, 0x0d, 0xb8};
  constexpr std::array<std::uint8_t, 2> documentation_too{0x3f, 0xff};
  // 2001::/23 has Teredo, benchmarks and other things that no webhook lives at.
  const bool protocols = bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] < 2;
  const bool global_unicast =
      bytes[0] >> 5U == 1;  // 2000::/3; all else is loopback, local, or not given away
  return global_unicast && !protocols && !begins(bytes, documentation) && !begins(bytes, documentation_too);
}

}  // namespace

bool public_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return public4(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address, sizeof in6);
  Bytes6 bytes{};
  std::memcpy(bytes.data(), &in6.sin6_addr, bytes.size());
  return public6(bytes);
}

bool literal_but_not_public(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  return found->ai_addr != nullptr && !public_address(*found->ai_addr);
}

std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* made = nullptr;
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    made = ::inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address, sizeof in6);
    made = ::inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
  }
  return made != nullptr ? made : "an address of another kind";
}

}  // namespace postrider
