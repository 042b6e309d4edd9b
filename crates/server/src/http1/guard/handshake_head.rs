//! The head of a WebSocket handshake with its header names in their usual case.
//!
//! Header names have no case, but some clients (gql for Python) look for `Sec-WebSocket-Protocol` to the letter. hyper
//! writes lower case, and its `title_case_headers` would make that `Sec-Websocket-Protocol`, in every response.

const HANDSHAKE_STATUS: &[u8] = b"HTTP/1.1 101 ";

const USUAL_NAMES: [&str; 4] = ["Connection", "Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol"];

/// The same head with the usual names, or `None` if these bytes are not the head of a handshake.
pub fn with_usual_case(head: &[u8]) -> Option<Vec<u8>> {
    if !head.starts_with(HANDSHAKE_STATUS) {
        return None;
    }
    let mut head = head.to_vec();
    for line in head.split_mut(|byte| *byte == b'\n') {
        let name_length = line.iter().position(|byte| *byte == b':').unwrap_or(0);
        let name = &mut line[..name_length];
        if let Some(usual) = USUAL_NAMES.iter().find(|usual| name.eq_ignore_ascii_case(usual.as_bytes())) {
            name.copy_from_slice(usual.as_bytes());
        }
    }
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_handshake_change() {
        let head =
            b"HTTP/1.1 101 Switching Protocols\r\nsec-websocket-protocol: upgrade\r\nx-request-id: 1\r\n\r\n";
        let usual = with_usual_case(head).expect("a handshake");
        let expected =
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: upgrade\r\nx-request-id: 1\r\n\r\n";
        assert_eq!(String::from_utf8(usual).expect("ASCII"), expected);
        assert_eq!(with_usual_case(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"), None);
    }
}
