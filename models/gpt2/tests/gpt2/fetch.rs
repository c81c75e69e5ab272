//! Downloads, from a server on this machine.

use gpt2::fetch::{download, is_there};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

/// The SHA-256 of "hello\n".
const HELLO: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

/// A server that has `/hello` and nothing else.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let response = if lines
                .first()
                .is_some_and(|line| line.starts_with("GET /hello "))
            {
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"
            } else {
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            };
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn files_are_downloaded_and_checked() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hello.txt");
    assert!(!is_there(&path, HELLO).unwrap());

    let error = download(&format!("{server}/hello"), &path, "00", |_, _| {}).unwrap_err();
    assert!(
        error.to_string().ends_with("not 00: nothing is kept"),
        "{error}"
    );
    let error = download(&format!("{server}/other"), &path, HELLO, |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut last = None;
    download(&format!("{server}/hello"), &path, HELLO, |done, length| {
        last = Some((done, length))
    })
    .unwrap();
    assert_eq!(last, Some((6, Some(6))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello\n");
    assert!(is_there(&path, HELLO).unwrap());
}
