from snarkline.cli import main

main()
